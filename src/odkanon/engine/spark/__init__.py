"""Spark as a backend: more than one machine."""
