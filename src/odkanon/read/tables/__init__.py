"""Tables: opening them, their columns, formats and filters."""
