"""Rows of segments: every file that a snapshot may name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.domain.imports import ImportedSegment
from storage.engine.catalog import Connection
from storage.engine.schema import segments
from storage.engine.segments import segment_id_of


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """What the catalog knows of a file."""

    key: str
    rows: int
    bytes: int
    sha256: str
    encodings: list[str]


def insert_segments(
    connection: Connection, sheet_no: int, published: Iterable[ImportedSegment], now: datetime
) -> None:
    values = [
        {
            "id": segment_id_of(one.key),
            "sheet_no": sheet_no,
            "key": one.key,
            "rows": one.rows,
            "bytes": one.bytes,
            "sha256": one.sha256,
            "encodings": [field.encoding for field in one.fields],
            "created_at": now,
        }
        for one in published
    ]
    if values:
        connection.execute(segments.insert(), values)


def share_segments(connection: Connection, keys: Mapping[str, str], sheet_no: int, now: datetime) -> None:
    """Name files of other sheets under the keys that they have for this one."""
    for key, shared in keys.items():
        row = connection.execute(sa.select(segments).where(segments.c.key == key)).mappings().one()
        values = {"id": segment_id_of(shared), "key": shared, "sheet_no": sheet_no, "created_at": now}
        kept = {name: row[name] for name in ("rows", "bytes", "sha256", "encodings")}
        connection.execute(segments.insert().values(values | kept))


def select_segments(connection: Connection, sheet_no: int) -> dict[str, SegmentRow]:
    """Return what is known of a sheet's files, by key."""
    fields = [segments.c[name] for name in SegmentRow.__slots__]
    rows = connection.execute(sa.select(*fields).where(segments.c.sheet_no == sheet_no)).mappings()
    return {row["key"]: SegmentRow(**row) for row in rows}


def select_known_keys(connection: Connection, keys: list[str]) -> set[str]:
    """Return which of the keys the catalog knows."""
    return set(connection.execute(sa.select(segments.c.key).where(segments.c.key.in_(keys))).scalars())


def select_all_keys(connection: Connection) -> list[str]:
    """The keys of all files of sheets."""
    return list(connection.execute(sa.select(segments.c.key)).scalars())
