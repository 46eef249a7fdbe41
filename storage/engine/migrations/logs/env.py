"""Alembic's entry: run the changes on the connection that it was handed."""

from alembic import context

from storage.engine.log_schema import log_metadata as metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
