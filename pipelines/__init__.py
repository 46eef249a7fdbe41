"""Long work, made observable by Dagster."""
