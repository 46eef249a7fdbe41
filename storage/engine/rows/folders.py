"""Rows of folders: a tree within each workspace."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from storage.domain.folders import Folder
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import folders

# Spelled out, not bound: only so does the index on this expression answer.
_ROOT: sa.ColumnElement[int] = sa.literal_column("0")
_ONE: sa.ColumnElement[int] = sa.literal_column("1", sa.Integer)


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


def folders_above(connection: Connection, folder_id: int) -> list[int]:
    """Return the ids of the folders on the way from this one, itself first, up to the root."""
    chain = sa.select(folders.c.id, folders.c.parent_id, _ONE.label("step")).where(folders.c.id == folder_id)
    way = chain.cte("way", recursive=True)
    above = sa.select(folders.c.id, folders.c.parent_id, way.c.step + 1)
    way = way.union_all(above.join(way, folders.c.id == way.c.parent_id))
    return list(connection.execute(sa.select(way.c.id).order_by(way.c.step)).scalars())


def levels_below(connection: Connection, folder_ids: Collection[int]) -> int:
    """Count the levels that folders and what lies in them take, at least 1."""
    tops = sa.select(folders.c.id, _ONE.label("level")).where(folders.c.id.in_(sorted(folder_ids)))
    tree = tops.cte("tree", recursive=True)
    below = sa.select(folders.c.id, tree.c.level + 1).join(tree, folders.c.parent_id == tree.c.id)
    tree = tree.union_all(below)
    return connection.execute(sa.select(sa.func.max(tree.c.level))).scalar() or 1


def walk_path(connection: Connection, workspace_id: int, names: Sequence[str]) -> tuple[int, int]:
    """Follow names down from the root; return how many lead on, and the id of the last (0: the root)."""
    given: dict[str, Any] = {f"name_{at}": name for at, name in enumerate(names)}
    row = connection.execute(_walk(len(names)), given | {"of": workspace_id}).one()
    return row.depth, row.id


@cache
def _walk(length: int) -> sa.Select[tuple[int, int]]:
    """The query that follows a path of so many names; one query a length, so that each is compiled once."""
    name_at: list[sa.BindParameter[str]] = [sa.bindparam(f"name_{at}") for at in range(length)]
    steps = [sa.select(sa.literal(at).label("at"), name_at[at].label("name")) for at in range(length)]
    wanted = sa.union_all(*steps).cte("wanted")
    found = sa.select(sa.literal(0).label("depth"), _ROOT.label("id")).cte("found", recursive=True)
    child = sa.select(found.c.depth + 1, folders.c.id).select_from(
        found.join(wanted, wanted.c.at == found.c.depth).join(
            folders,
            (folders.c.workspace_id == sa.bindparam("of"))
            & (sa.func.coalesce(folders.c.parent_id, _ROOT) == found.c.id)
            & (folders.c.name == wanted.c.name),
        )
    )
    found = found.union_all(child)
    return sa.select(found.c.depth, found.c.id).order_by(found.c.depth.desc()).limit(1)


def find_clash(
    connection: Connection, workspace_id: int, folder_ids: Collection[int], parent_id: int | None
) -> str | None:
    """Find a name that two would have, were these folders to lie in one with what lies there already."""
    moved = sorted(folder_ids)
    theirs = sa.select(folders.c.name).where(folders.c.id.in_(moved))
    names: Counter[str] = Counter(connection.execute(theirs).scalars())
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        return min(twice)
    there = sa.select(sa.func.min(folders.c.name)).where(
        folders.c.workspace_id == workspace_id,
        sa.func.coalesce(folders.c.parent_id, _ROOT) == (parent_id or 0),
        folders.c.name.in_(list(names)),
        folders.c.id.not_in(moved),
    )
    clash: str | None = connection.execute(there).scalar()
    return clash


def update_folder_row(connection: Connection, folder_id: int, values: dict[str, Any]) -> None:
    connection.execute(folders.update().where(folders.c.id == folder_id).values(values))


def delete_folder_row(connection: Connection, folder_id: int) -> None:
    connection.execute(folders.delete().where(folders.c.id == folder_id))


def insert_folder(
    connection: Connection, workspace_id: int, parent_id: int | None, name: str, now: datetime
) -> Folder:
    values = {"workspace_id": workspace_id, "parent_id": parent_id, "name": name}
    result = connection.execute(folders.insert().values(**values, created_at=now, updated_at=now))
    return Folder(new_no(result), workspace_id, parent_id, name, now, now)
