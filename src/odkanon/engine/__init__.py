"""Engines: the questions that methods ask of an OD matrix, answered in memory, in DuckDB or on Spark."""
