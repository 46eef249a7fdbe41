"""Dagster's instance: made once, its record kept in SQLite, its own programs run with less waste."""
