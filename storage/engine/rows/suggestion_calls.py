"""Rows of calls for suggestions: as many as the limit counts, by key."""

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.schema import suggestion_calls


def select_calls(connection: Connection, key_id: int, *, after_us: int) -> list[int]:
    """When a key's calls were made that came after a moment."""
    where = (suggestion_calls.c.key_id == key_id) & (suggestion_calls.c.called_us > after_us)
    return [
        int(us) for us in connection.execute(sa.select(suggestion_calls.c.called_us).where(where)).scalars()
    ]


def insert_call(connection: Connection, key_id: int, called_us: int) -> None:
    connection.execute(suggestion_calls.insert().values(key_id=key_id, called_us=called_us))


def forget_calls(connection: Connection, key_id: int, *, through_us: int) -> None:
    """Remove a key's calls up to a moment."""
    where = (suggestion_calls.c.key_id == key_id) & (suggestion_calls.c.called_us <= through_us)
    connection.execute(suggestion_calls.delete().where(where))
