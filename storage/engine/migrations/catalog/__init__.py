"""Schema changes of the catalog database."""
