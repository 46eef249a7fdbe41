"""Schema changes of the logs database."""
