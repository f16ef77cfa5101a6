"""The best tree cuts."""
