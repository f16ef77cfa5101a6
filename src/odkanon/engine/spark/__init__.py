"""Spark as a backend of the SQL engine: more data than one machine holds."""
