"""A release folder as a format: file names, schema, reading, writing and verifying."""
