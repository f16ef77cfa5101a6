"""DuckDB as a backend of the SQL engine: more data than memory, on one machine."""
