"""Synthetic trips for trying out, testing and measuring the program."""
