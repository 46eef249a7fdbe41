"""The mechanisms: the only place in storage that knows SQL, DuckDB, Arrow and Parquet."""
