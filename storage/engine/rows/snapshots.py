"""Rows of snapshots as the upkeep sees them: what there is to fold, and what nothing names."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.domain.manifests import Manifest
from storage.engine.catalog import Connection
from storage.engine.manifest_codec import decode_manifest, encode_manifest
from storage.engine.schema import patches, segments, sheet_versions, sheets, snapshots, tables

# beyond it a statement takes no more parameters
_MOST_IN = 1_000


def select_due_sheets(
    connection: Connection, *, cells: int, size: int, pieces: int, limit: int
) -> list[tuple[int, str]]:
    """Return number and id of live sheets whose head has more to fold or to join than this."""
    head = snapshots.c
    due = (head.overlay_cells > cells) | (head.overlay_bytes > size) | (head.part_count > pieces)
    query = (
        sa.select(sheets.c.no, sheets.c.id)
        .join(snapshots, head.no == sheets.c.head_no)
        .where(sheets.c.deleted_at.is_(None) & due)
        .order_by(sheets.c.no)
        .limit(limit)
    )
    return [(no, str(sheet_id)) for no, sheet_id in connection.execute(query)]


def select_sheets_with_snapshots(connection: Connection, *, before: datetime) -> list[int]:
    """Return the sheets that have snapshots from before a moment besides their head and their versions."""
    named = sa.exists().where(sheet_versions.c.snapshot_no == snapshots.c.no)
    head = sa.exists().where(sheets.c.head_no == snapshots.c.no)
    where = (snapshots.c.created_at < before) & ~named & ~head
    return list(connection.execute(sa.select(snapshots.c.sheet_no).where(where).distinct()).scalars())


@dataclass(frozen=True, slots=True)
class Unnamed:
    """What nothing of a sheet names any more."""

    snapshot_nos: list[int]
    patch_nos: list[int]


def find_unnamed(connection: Connection, sheet_no: int, *, before: datetime) -> Unnamed:
    """Return snapshots and patches from before a moment that neither head nor versions need."""
    versions = sa.select(sheet_versions.c.snapshot_no).where(sheet_versions.c.sheet_no == sheet_no)
    head = sa.select(sheets.c.head_no).where(sheets.c.no == sheet_no)
    named = set(connection.execute(versions.union(head)).scalars())
    fields = (snapshots.c.no, snapshots.c.manifest_no, snapshots.c.patches, snapshots.c.created_at)
    rows = connection.execute(sa.select(*fields).where(snapshots.c.sheet_no == sheet_no)).all()
    kept = {no for no, _, _, created_at in rows if no in named or created_at >= before}
    needed = kept | {manifest_no for no, manifest_no, _, _ in rows if no in kept and manifest_no}
    patched = {one for no, _, held, _ in rows if no in kept for one in held or ()}
    old = sa.select(patches.c.no).where((patches.c.sheet_no == sheet_no) & (patches.c.created_at < before))
    return Unnamed(
        [no for no, _, _, _ in rows if no not in needed],
        [no for no in connection.execute(old).scalars() if no not in patched],
    )


def delete_unnamed(connection: Connection, unnamed: Unnamed) -> None:
    for table, nos in ((snapshots, unnamed.snapshot_nos), (patches, unnamed.patch_nos)):
        for some in _chunks(nos):
            connection.execute(table.delete().where(table.c.no.in_(some)))


def select_named_keys(connection: Connection, sheet_no: int) -> set[str]:
    """Return the segments that any snapshot of a sheet names."""
    where = (snapshots.c.sheet_no == sheet_no) & snapshots.c.manifest_no.is_(None)
    found: set[str] = set()
    for spelled in connection.execute(sa.select(snapshots.c.manifest).where(where)).scalars():
        found |= decode_manifest(spelled).segments().keys()
    return found


def select_sheets_with_segments(connection: Connection) -> list[int]:
    return list(connection.execute(sa.select(segments.c.sheet_no).distinct()).scalars())


def mark_segments(
    connection: Connection, sheet_no: int, named: Collection[str], now: datetime, before: datetime
) -> list[str]:
    """Note since when segments are not named; return those that were not since before a moment."""
    rows = connection.execute(
        sa.select(segments.c.key, segments.c.unnamed_at).where(segments.c.sheet_no == sheet_no)
    ).all()
    fresh = [key for key, since in rows if key not in named and since is None]
    again = [key for key, since in rows if key in named and since is not None]
    for keys, value in ((fresh, now), (again, None)):
        for some in _chunks(keys):
            connection.execute(segments.update().where(segments.c.key.in_(some)).values(unnamed_at=value))
    return [key for key, since in rows if key not in named and since is not None and since < before]


def delete_segments(connection: Connection, keys: Iterable[str]) -> None:
    for some in _chunks(list(keys)):
        connection.execute(segments.delete().where(segments.c.key.in_(some)))


def select_purgeable(connection: Connection, *, before: datetime) -> list[int]:
    """Return sheets deleted before a moment, themselves or with their table, that still hold something."""
    gone = (sheets.c.deleted_at < before) | (tables.c.deleted_at < before)
    held = snapshots.c.row_count > 0
    versions = sa.exists().where(sheet_versions.c.sheet_no == sheets.c.no)
    query = (
        sa.select(sheets.c.no)
        .join(tables, tables.c.no == sheets.c.table_no)
        .join(snapshots, snapshots.c.no == sheets.c.head_no)
        .where(gone & (held | versions))
    )
    return list(connection.execute(query).scalars())


def empty_sheet(connection: Connection, sheet_no: int) -> None:
    """Take everything away that a deleted sheet held; its row stays, for the operations that name it."""
    connection.execute(sheet_versions.delete().where(sheet_versions.c.sheet_no == sheet_no))
    head = sa.select(sheets.c.head_no).where(sheets.c.no == sheet_no).scalar_subquery()
    others = (snapshots.c.sheet_no == sheet_no) & (snapshots.c.no != head)
    connection.execute(snapshots.delete().where(others))
    nothing = {
        "manifest": encode_manifest(Manifest()),
        "manifest_no": None,
        "patches": None,
        "row_count": 0,
        "overlay_cells": 0,
        "overlay_bytes": 0,
        "part_count": 0,
    }
    connection.execute(snapshots.update().where(snapshots.c.no == head).values(nothing))
    connection.execute(patches.delete().where(patches.c.sheet_no == sheet_no))


def _chunks(values: list[int] | list[str]) -> Iterable[list[int] | list[str]]:
    return (values[at : at + _MOST_IN] for at in range(0, len(values), _MOST_IN))
