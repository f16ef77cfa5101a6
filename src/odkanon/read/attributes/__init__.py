"""What a trip has besides its two places: one description for cubes, segments and filters."""
