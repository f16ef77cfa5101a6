"""How useful and how private a release is, and how good it could be at best."""
