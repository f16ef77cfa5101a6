"""ATG-Soft."""
