"""The table library: request logs, templates and sheets as versioned Parquet under one catalog."""
