"""Numbered schema changes, one folder a database."""
