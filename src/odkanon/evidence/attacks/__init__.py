"""The attacks, one module each: a function from a case to what it found."""
