"""External ids: what other systems call an entity, attached within the transaction that makes it."""

from collections.abc import Iterable

from storage.domain.errors import Conflict
from storage.domain.keys import Principal
from storage.domain.prompts import ExternalId
from storage.engine.catalog import Connection
from storage.engine.rows.external_ids import find_owner, insert_external_id


def attach_external_ids(
    connection: Connection, who: Principal, kind: str, entity_id: int, pairs: Iterable[ExternalId]
) -> None:
    """Attach pairs to an entity; those that it has already stay.

    Raises:
        Conflict: another entity of the kind has one of them.
    """
    for pair in pairs:
        owner = find_owner(connection, who.workspace_id, kind, pair)
        if owner is None:
            insert_external_id(connection, who.workspace_id, kind, pair, entity_id)
        elif owner != entity_id:
            raise Conflict(
                f"The external id {pair.source}/{pair.external_id} belongs to another {kind}, id {owner}"
            )
