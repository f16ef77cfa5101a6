"""Reading rows well: estimates, intervals and sure bounds of flows between any places, from a release folder alone."""
