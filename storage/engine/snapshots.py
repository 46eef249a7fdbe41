"""Snapshots: a manifest for every commit of a sheet; the sheet's head moves by compare-and-set."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.domain.errors import CommitConflict
from storage.domain.manifests import Manifest
from storage.engine.catalog import Connection, new_no
from storage.engine.lru import Lru
from storage.engine.manifest_codec import decode_manifest, encode_manifest
from storage.engine.schema import sheets, snapshots

_KEPT_SOURCES = 200_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a sheet's rows: what was committed on top of `base_no`."""

    no: int
    sheet_no: int
    base_no: int | None
    manifest: Manifest


class Snapshots:
    """Reads committed snapshots; a bounded number of the sources that they name stays in memory.

    A snapshot of an open transaction must not be read through it: a rollback gives its number again.
    """

    def __init__(self) -> None:
        self._kept: Lru[int, Snapshot] = Lru(_KEPT_SOURCES, _weight)

    def get(self, connection: Connection, no: int) -> Snapshot:
        return self._kept.get(no, lambda: _load(connection, no))


def _weight(snapshot: Snapshot) -> int:
    return 1 + sum(1 + len(part.columns) for part in snapshot.manifest.parts)


def _load(connection: Connection, no: int) -> Snapshot:
    query = sa.select(snapshots.c.sheet_no, snapshots.c.base_no, snapshots.c.manifest)
    sheet_no, base_no, manifest = connection.execute(query.where(snapshots.c.no == no)).one()
    return Snapshot(no, sheet_no, base_no, decode_manifest(manifest))


def insert_snapshot(
    connection: Connection, sheet_no: int, base_no: int | None, manifest: Manifest, now: datetime
) -> Snapshot:
    """Add a snapshot that nothing points to yet."""
    values = {
        "sheet_no": sheet_no,
        "base_no": base_no,
        "manifest": encode_manifest(manifest),
        "row_count": manifest.row_count,
        "created_at": now,
    }
    no = new_no(connection.execute(snapshots.insert().values(values)))
    return Snapshot(no, sheet_no, base_no, manifest)


def reserve_snapshot(connection: Connection, now: datetime) -> int:
    """Number a sheet's first snapshot: each names the other, so it is filled once the sheet is there."""
    values = {"sheet_no": 0, "manifest": b"", "row_count": 0, "created_at": now}
    return new_no(connection.execute(snapshots.insert().values(values)))


def fill_snapshot(connection: Connection, no: int, sheet_no: int, manifest: Manifest) -> None:
    """Give a reserved snapshot its sheet and its rows."""
    values = {"sheet_no": sheet_no, "manifest": encode_manifest(manifest), "row_count": manifest.row_count}
    connection.execute(snapshots.update().where(snapshots.c.no == no).values(values))


def commit(
    connection: Connection, base: Snapshot, manifest: Manifest, *, next_row_no: int, now: datetime
) -> Snapshot:
    """Make `manifest` the sheet's head if `base` still is; the caller's transaction decides both or none.

    Raises:
        CommitConflict: the head has moved since `base` was read, or the sheet is deleted.
    """
    new = insert_snapshot(connection, base.sheet_no, base.no, manifest, now)
    where = (sheets.c.no == base.sheet_no) & (sheets.c.head_no == base.no) & sheets.c.deleted_at.is_(None)
    values = {
        "head_no": new.no,
        "row_count": manifest.row_count,
        "next_row_no": next_row_no,
        "updated_at": now,
    }
    if connection.execute(sheets.update().where(where).values(values)).rowcount != 1:
        raise CommitConflict("The sheet was changed meanwhile; try again")
    return new
