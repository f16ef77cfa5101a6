"""Releases in the formats of other programs."""
