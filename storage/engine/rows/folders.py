"""Rows of folders: a tree within each workspace."""

from datetime import datetime

import sqlalchemy as sa

from storage.domain.folders import Folder
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import folders

# Spelled out, not bound: only so does the index on this expression answer.
_ROOT: sa.ColumnElement[int] = sa.literal_column("0")


def find_folder(connection: Connection, workspace_id: int, folder_id: int) -> Folder | None:
    return _find(connection, (folders.c.workspace_id == workspace_id) & (folders.c.id == folder_id))


def find_child_folder(
    connection: Connection, workspace_id: int, parent_id: int | None, name: str
) -> Folder | None:
    """Find a folder by its name among the children of a folder (None: of the root)."""
    where = (
        (folders.c.workspace_id == workspace_id)
        & (sa.func.coalesce(folders.c.parent_id, _ROOT) == (parent_id or 0))
        & (folders.c.name == name)
    )
    return _find(connection, where)


def _find(connection: Connection, where: sa.ColumnElement[bool]) -> Folder | None:
    row = connection.execute(sa.select(folders).where(where)).mappings().first()
    return None if row is None else Folder(**row)


def folder_depth(connection: Connection, folder_id: int) -> int:
    """How many folders stand on the way from the root to this one, itself included."""
    chain = sa.select(folders.c.id, folders.c.parent_id).where(folders.c.id == folder_id).cte(recursive=True)
    above = folders.alias()
    parents = sa.select(above.c.id, above.c.parent_id).join(chain, above.c.id == chain.c.parent_id)
    chain = chain.union_all(parents)
    return connection.execute(sa.select(sa.func.count()).select_from(chain)).scalar_one()


def insert_folder(
    connection: Connection, workspace_id: int, parent_id: int | None, name: str, now: datetime
) -> Folder:
    values = {"workspace_id": workspace_id, "parent_id": parent_id, "name": name}
    result = connection.execute(folders.insert().values(**values, created_at=now, updated_at=now))
    return Folder(new_no(result), workspace_id, parent_id, name, now, now)
