"""Engines answer the questions that methods ask of the data, wherever the data is."""
