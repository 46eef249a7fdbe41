"""The worker host: idle processes that wait for Dagster runs, the lanes that share them, the runs they do."""
