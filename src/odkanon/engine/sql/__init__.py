"""The engine for OD pairs in a database: one subset of SQL for DuckDB and Spark."""
