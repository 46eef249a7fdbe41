"""Revisions of the catalog database, in name order."""
