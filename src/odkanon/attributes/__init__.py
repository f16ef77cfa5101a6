"""Attributes of a trip beyond its two places: one grammar and one description for axes, segments and filters."""
