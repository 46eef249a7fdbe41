"""Deletes: what is deleted is gone from every read at once, and can come back for a while."""

from datetime import timedelta

UNDELETE_FOR = timedelta(days=7)
"""How long a deleted table or sheet can be brought back; then the upkeep removes what it held."""
