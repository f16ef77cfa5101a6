"""The audit's own way from a file to trips: raw columns, exact decimals, its own rules for contributors and copies."""
