"""How well a release answers what people ask of a matrix, on places that no method had a hand in."""
