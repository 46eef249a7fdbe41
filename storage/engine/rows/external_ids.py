"""Rows of external ids: a pair of source and id names at most one entity of its kind in a workspace."""

import sqlalchemy as sa

from storage.domain.prompts import ExternalId
from storage.engine.catalog import Connection
from storage.engine.schema import external_ids


def find_owner(connection: Connection, workspace_id: int, kind: str, pair: ExternalId) -> int | None:
    """Return the id of the entity that the pair names."""
    query = sa.select(external_ids.c.entity_id).where(
        external_ids.c.workspace_id == workspace_id,
        external_ids.c.kind == kind,
        external_ids.c.source == pair.source,
        external_ids.c.external_id == pair.external_id,
    )
    return connection.execute(query).scalar()


def insert_external_id(
    connection: Connection, workspace_id: int, kind: str, pair: ExternalId, entity_id: int
) -> None:
    connection.execute(
        external_ids.insert().values(
            workspace_id=workspace_id,
            kind=kind,
            source=pair.source,
            external_id=pair.external_id,
            entity_id=entity_id,
        )
    )


def select_external_ids(connection: Connection, kind: str, entity_id: int) -> tuple[ExternalId, ...]:
    query = (
        sa.select(external_ids.c.source, external_ids.c.external_id)
        .where(external_ids.c.kind == kind, external_ids.c.entity_id == entity_id)
        .order_by(external_ids.c.source, external_ids.c.external_id)
    )
    return tuple(ExternalId(*row) for row in connection.execute(query))
