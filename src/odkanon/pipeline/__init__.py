"""From a request to a release, saved: what the command line, Python, comparisons and the explorer all call."""
