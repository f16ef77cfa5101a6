"""H3 cells, hierarchies of zones, and published zones."""
