"""Cells, hierarchies over them, and the zones that are published."""
