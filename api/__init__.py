"""HTTP, spelled thinly over storage and pipelines."""
