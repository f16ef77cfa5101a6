"""Free zones."""
