"""GNSS points and their segmentation into trips."""
