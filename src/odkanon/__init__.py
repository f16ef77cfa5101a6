"""Origin-destination matrices that can be published without exposing anyone."""
