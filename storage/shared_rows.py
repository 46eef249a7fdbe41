"""Rows of one sheet laid into another that shares its files: no row is read or written."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from storage.domain.columns import Column
from storage.domain.manifests import Manifest, Part, Source, Stored
from storage.domain.overlay import Overlay, Patch, merged
from storage.engine.catalog import Connection
from storage.engine.rows.segments import share_segments
from storage.engine.segments import segment_key
from storage.engine.snapshots import Snapshot
from storage.store import Store


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows of some text columns at one moment, and the keys that their files have for the sheet to come."""

    columns: tuple[Column, ...]
    snapshot: Snapshot
    keys: Mapping[str, str]
    next_row_no: int

    @property
    def titles(self) -> list[str]:
        return [column.title for column in self.columns]

    @property
    def row_count(self) -> int:
        return self.snapshot.manifest.row_count

    def lay(
        self, connection: Connection, sheet_no: int, columns: Sequence[Column], now: datetime
    ) -> tuple[Manifest, Patch | None]:
        """Name the files for a sheet; return what its columns, in the order of these, are to hold."""
        share_segments(connection, self.keys, sheet_no, now)
        nos = {old.no: new.no for old, new in zip(self.columns, columns, strict=True)}
        return self._manifest(nos), _patch(self.snapshot.overlay, nos)

    def _manifest(self, nos: Mapping[int, int]) -> Manifest:
        known: dict[int, Mapping[int, Source]] = {}
        parts: list[Part] = []
        for part in self.snapshot.manifest.parts:
            laid = known.get(id(part.columns))
            if laid is None:
                held = {nos[no]: self._source(one) for no, one in part.columns.items() if no in nos}
                laid = known[id(part.columns)] = held
            parts.append(replace(part, columns=laid))
        return Manifest(tuple(parts))

    def _source(self, source: Source) -> Source:
        if not isinstance(source, Stored):
            return source
        return replace(source, segment=replace(source.segment, key=self.keys[source.segment.key]))


def _patch(overlay: Overlay, nos: Mapping[int, int]) -> Patch | None:
    held = Patch()
    for one in overlay.patches:
        held = merged(held, one.patch)
    cells = {nos[no]: entries for no, entries in held.cells.items() if no in nos and entries}
    return Patch(cells) if cells else None


@contextmanager
def shared_rows(
    store: Store, sheet_id: UUID, columns: Sequence[Column], snapshot: Snapshot, next_row_no: int
) -> Iterator[SharedRows]:
    """Share the files of columns with a sheet to come, for a block that commits it; gone if it fails.

    Raises:
        Unavailable: the disk is full.
    """
    wanted = {column.no for column in columns}
    named = {
        source.segment.key
        for part in snapshot.manifest.parts
        for no, source in part.columns.items()
        if no in wanted and isinstance(source, Stored)
    }
    keys: dict[str, str] = {}
    try:
        for key in sorted(named):
            keys[key] = segment_key(sheet_id, store.new_id())
            store.data.share(key, keys[key])
        yield SharedRows(tuple(columns), snapshot, keys, next_row_no)
    except BaseException:
        for key in keys.values():
            store.data.remove(key)
        raise
