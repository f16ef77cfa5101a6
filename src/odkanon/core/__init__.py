"""Arrays, exact weights, and outputs that appear whole or not at all."""
