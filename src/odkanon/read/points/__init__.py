"""GNSS points, and the trips they are cut into."""
