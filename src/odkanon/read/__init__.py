"""From files and tables to trips and OD matrices."""
