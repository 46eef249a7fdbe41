"""Rows of kept results of model calls."""

import json
import zlib
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from storage.domain.model_results import ModelResult
from storage.engine.catalog import Connection
from storage.engine.recalculation_schema import model_results as table

# a statement takes only so many parameters
_MOST_IN = 1_000


def select_results(
    connection: Connection, workspace_id: int, keys: Sequence[bytes], *, operation_no: int | None
) -> list[ModelResult]:
    """Return what a workspace, or one operation of it, knows of these keys."""
    where = (table.c.workspace_id == workspace_id) & table.c.key.in_(list(keys))
    if operation_no is not None:
        where &= table.c.operation_no == operation_no
    found = connection.execute(sa.select(table.c.key, table.c.content).where(where))
    return [ModelResult(row.key, *json.loads(zlib.decompress(row.content))) for row in found]


def select_known(connection: Connection, workspace_id: int, keys: Sequence[bytes]) -> set[bytes]:
    """Return which of these keys a workspace knows a result of."""
    found: set[bytes] = set()
    for first in range(0, len(keys), _MOST_IN):
        some = list(keys[first : first + _MOST_IN])
        where = (table.c.workspace_id == workspace_id) & table.c.key.in_(some)
        found.update(connection.execute(sa.select(table.c.key).where(where)).scalars())
    return found


def insert_results(
    connection: Connection,
    workspace_id: int,
    operation_no: int,
    results: Sequence[ModelResult],
    now: datetime,
) -> None:
    """Keep results, in the place of those that had their keys."""
    keys = [one.key for one in results]
    connection.execute(table.delete().where((table.c.workspace_id == workspace_id) & table.c.key.in_(keys)))
    rows = [
        {
            "workspace_id": workspace_id,
            "key": one.key,
            "operation_no": operation_no,
            "content": _packed(one),
            "created_at": now,
        }
        for one in results
    ]
    connection.execute(table.insert(), rows)


def delete_results_before(connection: Connection, before: datetime) -> int:
    return connection.execute(table.delete().where(table.c.created_at < before)).rowcount


def _packed(one: ModelResult) -> bytes:
    text = json.dumps([one.value, one.metrics], ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 1)
