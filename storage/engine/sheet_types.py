"""One type a column: what keeps every value of a snapshot's column, told without reading one."""

from collections.abc import Iterable, Sequence
from typing import Any

from storage.domain.encodings import Encoding, find_encoding, widened
from storage.domain.manifests import Fill
from storage.domain.overlay import KEPT
from storage.domain.sheet_upkeep import flat
from storage.engine.snapshots import Snapshot


def column_encodings(snapshot: Snapshot, column_nos: Sequence[int]) -> dict[int, Encoding]:
    """Return the tightest encoding of each column that its segments, fills and overlay agree on.

    Messages are JSON here. A column of nothing but nulls is text.
    """
    written = flat(snapshot.overlay).cells
    layouts = {id(part.columns): part.columns for part in snapshot.manifest.parts}
    found: dict[int, Encoding] = {}
    for no in column_nos:
        held: Encoding | None = find_encoding(_values(written.get(no, {}).values()))
        for columns in layouts.values():
            source = columns.get(no)
            if isinstance(source, Fill):
                held = widened(held, find_encoding([source.value]))
            elif source is not None:
                encoding = source.segment.encodings[source.field]
                held = widened(held, "json" if encoding == "messages" else encoding)
        found[no] = held or "text"
    return found


def _values(entries: Iterable[Any]) -> list[Any]:
    return [entry.value for entry in entries if entry.value is not KEPT]
