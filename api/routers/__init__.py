"""Routes, one family a file."""
