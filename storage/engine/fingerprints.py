"""Whether a column and what it reads are still the same, told from manifests alone."""

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from storage.domain.manifests import Fill, Source
from storage.engine.snapshots import Snapshot


def fingerprint(digest: str, columns: Iterable[tuple[Snapshot, int]]) -> str:
    """Return a hash of where the values of these columns stand, and of what is computed from them.

    It changes whenever a value may have; after upkeep it may change though no value has.
    """
    spelled = json.dumps([digest, [_column(*one) for one in columns]], separators=(",", ":"))
    return sha256(spelled.encode()).hexdigest()


def _column(snapshot: Snapshot, column_no: int) -> list[Any]:
    parts = [
        [part.first_row_no, part.count, part.offset, _source(part.columns.get(column_no))]
        for part in snapshot.manifest.parts
    ]
    patches = [
        one.no
        for one in snapshot.overlay.patches
        if column_no in one.patch.cells or column_no in one.patch.restated
    ]
    return [column_no, parts, patches]


def _source(source: Source | None) -> Any:
    if source is None:
        return None
    if isinstance(source, Fill):
        return [source.value, source.state.to_json()]
    return [source.segment.key, source.field, source.start]
