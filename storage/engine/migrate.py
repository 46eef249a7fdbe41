"""Bring a database to the schema of this release; an empty one is made, an older one is upgraded."""

import sqlalchemy as sa

from storage.engine.catalog import Catalog
from storage.engine.revisions import MIGRATIONS, known_revisions


class NewerSchema(RuntimeError):
    """The database was written by a newer release; this one must not touch it."""


def migrate(catalog: Catalog, branch: str) -> None:
    """Run what is missing of `migrations/<branch>`; safe when several processes start together.

    Raises:
        NewerSchema: the stored revision is unknown to this release.
    """
    if stored_revision(catalog) == known_revisions(branch)[-1]:
        return
    # alembic is slow to import and not needed when nothing is to be done
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util.exc import CommandError  # noqa: PLC0415

    with catalog.transaction() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS / branch).replace("%", "%%"))
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise NewerSchema(f"The {branch} database does not fit this release: {error}") from error


def stored_revision(catalog: Catalog) -> str | None:
    """The revision that a database says it has; None when it is empty."""
    with catalog.read() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
