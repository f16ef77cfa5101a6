"""What no release on the same hierarchies can beat."""
