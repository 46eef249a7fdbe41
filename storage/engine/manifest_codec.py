"""Manifests as bytes: zlib-compressed JSON.

{"format": 2,
 "sources": [{"key", "encodings", "at"} | {"fill", "at"?, "state"?}],
 "layouts": [[[first column, columns, source, first field, start, notes?], ...]],
 "parts": [[first row number, count, added at, layout, offset]]}

Neighbouring columns in neighbouring fields of one source are one run, so that 5,000 imported columns take
79 entries; parts cut from one share its layout, so that a deleted row costs one entry. Format 1, of the
first homes, has the runs of each part in the place of its layout and no offset.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from storage.domain.cells import COMPLETED, CellState
from storage.domain.manifests import Fill, Manifest, Part, SegmentRef, Source, Stored

_FORMAT, _FIRST_FORMAT = 2, 1
_PLAIN_RUN = 5


def encode_manifest(manifest: Manifest) -> bytes:
    places = _Places()
    layouts: list[list[list[int]]] = []
    # by identity: parts cut from one share the mapping itself
    laid: dict[int, int] = {}
    parts: list[list[Any]] = []
    for part in manifest.parts:
        if id(part.columns) not in laid:
            laid[id(part.columns)] = len(layouts)
            layouts.append(_runs(part.columns, places))
        at = laid[id(part.columns)]
        parts.append([part.first_row_no, part.count, part.added_at.isoformat(), at, part.offset])
    value = {"format": _FORMAT, "sources": places.spelled, "layouts": layouts, "parts": parts}
    return zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


class _Places:
    """The sources of a manifest, each spelled once."""

    def __init__(self) -> None:
        self.spelled: list[dict[str, Any]] = []
        self._at: dict[str, int] = {}

    def of(self, source: Source) -> int:
        if isinstance(source, Fill):
            spelled = _spelled_fill(source)
            return self._place(json.dumps(spelled, sort_keys=True), spelled)
        segment = source.segment
        at = segment.written_at.isoformat()
        return self._place(segment.key, {"key": segment.key, "encodings": list(segment.encodings), "at": at})

    def _place(self, name: str, spelled: dict[str, Any]) -> int:
        if name not in self._at:
            self._at[name] = len(self.spelled)
            self.spelled.append(spelled)
        return self._at[name]


def _spelled_fill(fill: Fill) -> dict[str, Any]:
    at = {} if fill.written_at is None else {"at": fill.written_at.isoformat()}
    state = {} if fill.state == COMPLETED else {"state": fill.state.to_json()}
    return {"fill": fill.value, **at, **state}


def _runs(columns: Mapping[int, Source], places: _Places) -> list[list[int]]:
    runs: list[list[int]] = []
    for column_no in sorted(columns):
        source = columns[column_no]
        run = [column_no, 1, places.of(source), *_fields_of(source)]
        if runs and _follows(runs[-1], run, isinstance(source, Fill)):
            runs[-1][1] += 1
        else:
            runs.append(run)
    return runs


def _fields_of(source: Source) -> list[int]:
    if isinstance(source, Fill):
        return [0, 0]
    return (
        [source.field, source.start] if source.notes is None else [source.field, source.start, source.notes]
    )


def _follows(before: list[int], run: list[int], is_fill: bool) -> bool:  # noqa: FBT001
    if len(before) > _PLAIN_RUN or len(run) > _PLAIN_RUN:
        return False
    first_column, length, at, first_field, start = before
    step = 0 if is_fill else length
    return [first_column + length, 1, at, first_field + step, start] == run


def decode_manifest(spelled: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        ValueError: it was written by a newer release.
    """
    value = json.loads(zlib.decompress(spelled))
    if value["format"] not in {_FORMAT, _FIRST_FORMAT}:
        raise ValueError(f"manifest format {value['format']} is unknown")
    sources = [_source(one) for one in value["sources"]]
    if value["format"] == _FIRST_FORMAT:
        parts = [
            Part(first, count, dict(_columns(runs, sources)), datetime.fromisoformat(at))
            for first, count, at, runs in value["parts"]
        ]
    else:
        layouts = [dict(_columns(runs, sources)) for runs in value["layouts"]]
        parts = [
            Part(first, count, layouts[layout], datetime.fromisoformat(at), offset)
            for first, count, at, layout, offset in value["parts"]
        ]
    return Manifest(tuple(parts))


def _source(value: Mapping[str, Any]) -> SegmentRef | Fill:
    if "key" in value:
        return SegmentRef(value["key"], tuple(value["encodings"]), datetime.fromisoformat(value["at"]))
    at = value.get("at")
    state = CellState.from_json(value.get("state", {}))
    return Fill(value["fill"], None if at is None else datetime.fromisoformat(at), state)


def _columns(runs: Iterable[list[int]], sources: list[SegmentRef | Fill]) -> Iterable[tuple[int, Source]]:
    for first_column, length, at, first_field, start, *notes in runs:
        source = sources[at]
        for step in range(length):
            if isinstance(source, Fill):
                yield first_column + step, source
            else:
                yield (
                    first_column + step,
                    Stored(source, first_field + step, start, notes[0] if notes else None),
                )
