"""Evidence for the person who signs a release: attacks on it, and a sheet with their outcomes."""
