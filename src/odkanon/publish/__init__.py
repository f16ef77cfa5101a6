"""Release folders, pages and exports."""
