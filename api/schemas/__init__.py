"""Wire shapes, one family a file."""
