"""Rows of external ids: a pair of source and id names at most one entity of its kind in a workspace."""

from collections.abc import Sequence

import sqlalchemy as sa

from storage.domain.prompts import ExternalId
from storage.engine.catalog import Connection
from storage.engine.schema import external_ids

# made once: read for every render, and making it costs as much as running it
_OF_ENTITY = (
    sa.select(external_ids.c.source, external_ids.c.external_id)
    .where(external_ids.c.kind == sa.bindparam("kind"), external_ids.c.entity_id == sa.bindparam("entity_id"))
    .order_by(external_ids.c.source, external_ids.c.external_id)
)


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
    found = connection.execute(_OF_ENTITY, {"kind": kind, "entity_id": entity_id})
    return tuple(ExternalId(*row) for row in found)


def select_external_ids_of(
    connection: Connection, kind: str, entity_ids: Sequence[int]
) -> dict[int, list[ExternalId]]:
    """Return the pairs of each of some entities, by source and id; those without are left out."""
    columns = external_ids.c
    query = (
        sa.select(columns.entity_id, columns.source, columns.external_id)
        .where(columns.kind == kind, columns.entity_id.in_(entity_ids))
        .order_by(columns.entity_id, columns.source, columns.external_id)
    )
    found: dict[int, list[ExternalId]] = {}
    for entity_id, source, external_id in connection.execute(query):
        found.setdefault(entity_id, []).append(ExternalId(source, external_id))
    return found


def delete_external_ids(connection: Connection, kind: str, entity_id: int) -> None:
    """Free the pairs of an entity for others of its kind."""
    of_it = (external_ids.c.kind == kind) & (external_ids.c.entity_id == entity_id)
    connection.execute(external_ids.delete().where(of_it))
