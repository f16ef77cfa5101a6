"""Noise: flows under differential privacy."""
