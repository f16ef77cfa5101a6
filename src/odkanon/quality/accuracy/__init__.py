"""How accurately a release answers typical questions about flows, on places that no method has chosen."""
