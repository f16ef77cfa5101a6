"""DuckDB as a backend: one machine, more data than memory."""
