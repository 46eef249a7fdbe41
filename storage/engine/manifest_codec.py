"""Manifests as bytes: zlib-compressed JSON.

{"format": 1,
 "sources": [{"key", "encodings", "at"} | {"fill", "at"}],
 "parts": [[first row number, count, added at, [[first column, columns, source, first field, start], ...]]]}

Neighbouring columns in neighbouring fields of one source are one run, so that 5,000 imported columns take
79 entries. A column's source may later be of a further kind: readers refuse a format that they do not know.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from storage.domain.manifests import Fill, Manifest, Part, SegmentRef, Source, Stored

_FORMAT = 1


def encode_manifest(manifest: Manifest) -> bytes:
    sources: list[dict[str, Any]] = []
    places: dict[str, int] = {}

    def place(source: Source) -> tuple[int, int, int]:
        if isinstance(source, Fill):
            spelled = {"fill": source.value, "at": source.written_at.isoformat()}
            field, start = 0, 0
        else:
            segment = source.segment
            at = segment.written_at.isoformat()
            spelled = {"key": segment.key, "encodings": list(segment.encodings), "at": at}
            field, start = source.field, source.start
        name = segment.key if isinstance(source, Stored) else json.dumps(spelled, sort_keys=True)
        if name not in places:
            places[name] = len(sources)
            sources.append(spelled)
        return places[name], field, start

    parts = [
        [part.first_row_no, part.count, part.added_at.isoformat(), _runs(part.columns, place)]
        for part in manifest.parts
    ]
    spelled = {"format": _FORMAT, "sources": sources, "parts": parts}
    return zlib.compress(json.dumps(spelled, ensure_ascii=False, separators=(",", ":")).encode())


def _runs(columns: Mapping[int, Source], place: Any) -> list[list[int]]:
    runs: list[list[int]] = []
    for column_no in sorted(columns):
        source = columns[column_no]
        at, field, start = place(source)
        if runs:
            first_column, length, run_at, first_field, run_start = runs[-1]
            step = 0 if isinstance(source, Fill) else length
            follows = (first_column + length, run_at, first_field + step, run_start)
            if (column_no, at, field, start) == follows:
                runs[-1][1] += 1
                continue
        runs.append([column_no, 1, at, field, start])
    return runs


def decode_manifest(spelled: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        ValueError: it was written by a newer release.
    """
    value = json.loads(zlib.decompress(spelled))
    if value["format"] != _FORMAT:
        raise ValueError(f"manifest format {value['format']} is unknown")
    sources = [_source(one) for one in value["sources"]]
    return Manifest(
        tuple(
            Part(first, count, dict(_columns(runs, sources)), datetime.fromisoformat(added_at))
            for first, count, added_at, runs in value["parts"]
        )
    )


def _source(value: Mapping[str, Any]) -> SegmentRef | Fill:
    at = datetime.fromisoformat(value["at"])
    if "key" in value:
        return SegmentRef(value["key"], tuple(value["encodings"]), at)
    return Fill(value["fill"], at)


def _columns(runs: Iterable[list[int]], sources: list[SegmentRef | Fill]) -> Iterable[tuple[int, Source]]:
    for first_column, length, at, first_field, start in runs:
        source = sources[at]
        for step in range(length):
            if isinstance(source, Fill):
                yield first_column + step, source
            else:
                yield first_column + step, Stored(source, first_field + step, start)
