"""Snapshots: a manifest and its overlay for every commit of a sheet; the head moves by compare-and-set."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.errors import CommitConflict
from storage.domain.manifests import Manifest
from storage.domain.overlay import NumberedPatch, Overlay, Patch, count_to_merge, merged
from storage.domain.sheet_upkeep import count_pieces
from storage.engine.catalog import Connection, new_no
from storage.engine.lru import Lru
from storage.engine.manifest_codec import decode_manifest, encode_manifest
from storage.engine.overlay_codec import decode_patch, encode_patch
from storage.engine.schema import patches, sheets, snapshots

_KEPT_SOURCES = 200_000
_KEPT_SNAPSHOTS = 20_000
_KEPT_PATCH_BYTES = 64 * 1024 * 1024
# what a patch takes in memory beside its compressed bytes, about, for each cell
_ENTRY_BYTES = 400


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a sheet's rows: what was committed on top of `base_no`.

    `manifest_no` is the snapshot that keeps the manifest: itself, or an earlier one.
    """

    no: int
    sheet_no: int
    base_no: int | None
    manifest: Manifest
    overlay: Overlay
    manifest_no: int


@dataclass(frozen=True, slots=True)
class _Named:
    """What a row of snapshots names."""

    sheet_no: int
    base_no: int | None
    manifest_no: int
    patch_nos: tuple[int, ...]


class Snapshots:
    """Reads committed snapshots; a bounded part of what they name stays in memory.

    A snapshot of an open transaction must not be read through it: a rollback gives its number again.
    """

    def __init__(self) -> None:
        self._named: Lru[int, _Named] = Lru(_KEPT_SNAPSHOTS)
        self._manifests: Lru[int, Manifest] = Lru(_KEPT_SOURCES, _weight)
        self._patches: Lru[int, NumberedPatch] = Lru(_KEPT_PATCH_BYTES, _patch_weight)

    def get(self, connection: Connection, no: int) -> Snapshot:
        """Return a snapshot with all that it names."""
        named = self._named.get(no, lambda: _load(connection, no))
        manifest = self._manifests.get(
            named.manifest_no, lambda: _load_manifest(connection, named.manifest_no)
        )
        overlay = tuple(self._patch(connection, patch_no) for patch_no in named.patch_nos)
        return Snapshot(no, named.sheet_no, named.base_no, manifest, Overlay(overlay), named.manifest_no)

    def peek(self, connection: Connection, no: int) -> Snapshot:
        """As `get`, also for a snapshot of the open transaction: nothing new is kept."""
        named = _load(connection, no)
        manifest = self._manifests.find(named.manifest_no) or _load_manifest(connection, named.manifest_no)
        overlay = tuple(self._patches.find(one) or _load_patch(connection, one) for one in named.patch_nos)
        return Snapshot(no, named.sheet_no, named.base_no, manifest, Overlay(overlay), named.manifest_no)

    def _patch(self, connection: Connection, no: int) -> NumberedPatch:
        return self._patches.get(no, lambda: _load_patch(connection, no))


def _weight(manifest: Manifest) -> int:
    layouts = {id(part.columns): len(part.columns) for part in manifest.parts}
    return 1 + len(manifest.parts) + sum(layouts.values())


def _patch_weight(one: NumberedPatch) -> int:
    # texts are compressed to about a third
    return 3 * one.bytes + _ENTRY_BYTES * one.patch.cell_count


def _load(connection: Connection, no: int) -> _Named:
    wanted = (snapshots.c.sheet_no, snapshots.c.base_no, snapshots.c.manifest_no, snapshots.c.patches)
    sheet_no, base_no, manifest_no, named = connection.execute(
        sa.select(*wanted).where(snapshots.c.no == no)
    ).one()
    return _Named(sheet_no, base_no, manifest_no or no, tuple(named or ()))


def _load_manifest(connection: Connection, no: int) -> Manifest:
    spelled = connection.execute(sa.select(snapshots.c.manifest).where(snapshots.c.no == no)).scalar_one()
    return decode_manifest(spelled)


def _load_patch(connection: Connection, no: int) -> NumberedPatch:
    content = connection.execute(sa.select(patches.c.content).where(patches.c.no == no)).scalar_one()
    return NumberedPatch(no, decode_patch(content), len(content))


def insert_patch(connection: Connection, sheet_no: int, patch: Patch, now: datetime) -> NumberedPatch:
    """Add a patch that no snapshot names yet."""
    content = encode_patch(patch)
    values = {"sheet_no": sheet_no, "content": content, "created_at": now}
    return NumberedPatch(new_no(connection.execute(patches.insert().values(values))), patch, len(content))


def _patched(connection: Connection, base: Snapshot, patch: Patch, now: datetime) -> Overlay:
    """Lay a patch on an overlay: with the last of its patches, where they are no larger, it becomes one."""
    held = base.overlay.patches
    size = len(encode_patch(patch)) if held else 0
    kept = len(held) - count_to_merge(held, patch.cell_count, size)
    if kept < len(held):
        older = held[kept].patch
        for one in held[kept + 1 :]:
            older = merged(older, one.patch)
        patch = merged(older, patch)
    return Overlay((*held[:kept], insert_patch(connection, base.sheet_no, patch, now)))


def _insert(
    connection: Connection,
    base: Snapshot,
    manifest: Manifest,
    overlay: Overlay,
    now: datetime,
    manifest_no: int | None,
) -> Snapshot:
    """Add a snapshot that nothing points to yet; a manifest that another snapshot keeps is not kept twice."""
    values = {
        "sheet_no": base.sheet_no,
        "base_no": base.no,
        "manifest": encode_manifest(manifest) if manifest_no is None else b"",
        "manifest_no": manifest_no,
        "created_at": now,
        **_facts(manifest, overlay),
    }
    no = new_no(connection.execute(snapshots.insert().values(values)))
    return Snapshot(no, base.sheet_no, base.no, manifest, overlay, manifest_no or no)


def _facts(manifest: Manifest, overlay: Overlay) -> dict[str, Any]:
    return {
        "row_count": manifest.row_count,
        "patches": list(overlay.numbers) or None,
        "overlay_cells": overlay.cell_count,
        "overlay_bytes": overlay.bytes,
        "part_count": count_pieces(manifest),
    }


def reserve_snapshot(connection: Connection, now: datetime) -> int:
    """Number a sheet's first snapshot: each names the other, so it is filled once the sheet is there."""
    values = {"sheet_no": 0, "manifest": b"", "row_count": 0, "created_at": now}
    return new_no(connection.execute(snapshots.insert().values(values)))


def fill_snapshot(connection: Connection, no: int, sheet_no: int, manifest: Manifest) -> None:
    """Give a reserved snapshot its sheet and its rows."""
    values = {"sheet_no": sheet_no, "manifest": encode_manifest(manifest), **_facts(manifest, Overlay())}
    connection.execute(snapshots.update().where(snapshots.c.no == no).values(values))


def commit(
    connection: Connection,
    base: Snapshot,
    manifest: Manifest,
    *,
    next_row_no: int,
    now: datetime,
    patch: Patch | None = None,
    overlay: Overlay | None = None,
    updated_at: datetime | None = None,
) -> Snapshot:
    """Make a new snapshot the sheet's head if `base` still is; the caller's transaction decides both or none.

    `overlay` replaces the base's (a fold); `patch` is laid on the base's. A manifest that is not changed
    must be the base's own: it is not kept twice then. `updated_at` is the sheet's where its content stays.

    Raises:
        CommitConflict: the head has moved since `base` was read, or the sheet is deleted.
    """
    laid = base.overlay if overlay is None else overlay
    if patch is not None:
        laid = _patched(connection, base, patch, now)
    shared = base.manifest_no if manifest is base.manifest else None
    new = _insert(connection, base, manifest, laid, now, shared)
    _move_head(connection, base, new, next_row_no, updated_at or now)
    return new


def commit_again(
    connection: Connection, base: Snapshot, source: Snapshot, *, next_row_no: int, now: datetime
) -> Snapshot:
    """Make what an earlier snapshot of the sheet holds its head again, for the cost of one row.

    Raises:
        CommitConflict: the head has moved since `base` was read, or the sheet is deleted.
    """
    new = _insert(connection, base, source.manifest, source.overlay, now, source.manifest_no)
    _move_head(connection, base, new, next_row_no, now)
    return new


def _move_head(
    connection: Connection, base: Snapshot, new: Snapshot, next_row_no: int, now: datetime
) -> None:
    where = (sheets.c.no == base.sheet_no) & (sheets.c.head_no == base.no) & sheets.c.deleted_at.is_(None)
    values = {
        "head_no": new.no,
        "row_count": new.manifest.row_count,
        "next_row_no": next_row_no,
        "updated_at": now,
    }
    if connection.execute(sheets.update().where(where).values(values)).rowcount != 1:
        raise CommitConflict("The sheet was changed meanwhile; try again")
