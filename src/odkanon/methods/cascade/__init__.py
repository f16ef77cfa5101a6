"""Cascade: every trip once, at the finest place that k share, so that no smaller group can be shown to exist."""
