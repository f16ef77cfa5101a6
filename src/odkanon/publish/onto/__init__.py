"""Releases apportioned to zones of the user's own: computed from published numbers, and as safe as they are."""
