"""What a release keeps, how it protects, and what could be reached at best."""
