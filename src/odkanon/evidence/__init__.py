"""Evidence for whoever signs a release: attacks that were run on it, what they found, and how far they came."""
