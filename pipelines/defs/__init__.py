"""The Dagster decorators: assets, jobs, sensors, schedules, checks."""
