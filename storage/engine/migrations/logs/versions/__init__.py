"""Revisions of the logs database, in name order."""
