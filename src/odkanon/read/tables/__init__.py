"""Tables: opening them, their columns, times, layouts and filters."""
