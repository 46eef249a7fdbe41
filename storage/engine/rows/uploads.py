"""Which uploads the operations name."""

from uuid import UUID

import sqlalchemy as sa

from storage.domain.operations import ENDED
from storage.engine.catalog import Connection
from storage.engine.schema import operations


def select_open_uploads(connection: Connection) -> set[UUID]:
    """Return the ids of uploads that operations not yet ended will read."""
    query = sa.select(operations.c.spec["upload"]["id"].as_string()).where(
        operations.c.status.not_in(sorted(ENDED))
    )
    return {UUID(found) for found in connection.execute(query).scalars() if found}
