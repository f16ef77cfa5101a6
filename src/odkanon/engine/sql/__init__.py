"""The engine for OD pairs in a database, in a subset of SQL that DuckDB and Spark share."""
