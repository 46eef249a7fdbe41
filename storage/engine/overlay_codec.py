"""Patches as bytes: zlib-compressed JSON.

{"format": 1,
 "cells": {column: {row: [microseconds, value | absent when kept, state | absent]}},
 "restated": {column: [end row number, state]}}

An entry is [at, value], [at, value, state], or {"at", "state"} where the value is kept.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any

from storage.domain.cells import COMPLETED, CellState
from storage.domain.overlay import KEPT, Entry, Patch, Restated, from_micros, to_micros

_FORMAT = 1
# values may have megabytes, and a caller waits
_LEVEL = 1


def encode_patch(patch: Patch) -> bytes:
    cells = {
        no: {row: _spelled(entry) for row, entry in entries.items()} for no, entries in patch.cells.items()
    }
    restated = {no: [one.end_row_no, one.state.to_json()] for no, one in patch.restated.items()}
    value = {"format": _FORMAT, "cells": cells, "restated": restated}
    return zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), _LEVEL)


def _spelled(entry: Entry) -> Any:
    at = to_micros(entry.written_at)
    if entry.value is KEPT:
        return {"at": at, "state": entry.state.to_json()}
    if entry.state == COMPLETED:
        return [at, entry.value]
    return [at, entry.value, entry.state.to_json()]


def decode_patch(spelled: bytes) -> Patch:
    """Read a patch.

    Raises:
        ValueError: it was written by a newer release.
    """
    value = json.loads(zlib.decompress(spelled))
    if value["format"] != _FORMAT:
        raise ValueError(f"patch format {value['format']} is unknown")
    cells = {
        int(no): {int(row): _entry(one) for row, one in entries.items()}
        for no, entries in value["cells"].items()
    }
    restated = {
        int(no): Restated(CellState.from_json(state), end) for no, (end, state) in value["restated"].items()
    }
    return Patch(cells, restated)


def _entry(value: list[Any] | Mapping[str, Any]) -> Entry:
    if isinstance(value, Mapping):
        return Entry(KEPT, from_micros(value["at"]), CellState.from_json(value["state"]))
    at, held, *state = value
    return Entry(held, from_micros(at), CellState.from_json(state[0]) if state else COMPLETED)
