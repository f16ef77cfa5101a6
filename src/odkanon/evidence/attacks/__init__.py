"""The built-in attacks."""
