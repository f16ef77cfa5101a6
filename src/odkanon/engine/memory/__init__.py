"""The engine for OD pairs in memory."""
