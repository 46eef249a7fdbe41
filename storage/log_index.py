"""The index of words and the dictionary of values of each segment: made after it, found by searches."""

from dataclasses import dataclass

from storage.domain.request_logs import to_us
from storage.engine.log_segments import FOLDER
from storage.engine.log_values import write_values
from storage.engine.log_words import write_words
from storage.engine.rows.log_companions import (
    VALUES,
    WORDS,
    Companion,
    forget_companions,
    insert_companions,
    select_companions,
    select_lacking,
)
from storage.engine.rows.log_segments import Segment
from storage.leases import held_lease, renew_lease
from storage.store import Store

INDEX_LEASE = "index"
INDEX_FROM_BYTES = 1_048_576
"""Smaller segments are read whole sooner than an index would be; compaction makes larger ones of them."""


@dataclass(frozen=True, slots=True)
class IndexResult:
    """How many segments got their index and dictionary, and the bytes of both."""

    segments: int = 0
    rows: int = 0
    words_bytes: int = 0
    values_bytes: int = 0


def count_unindexed(store: Store, *, from_bytes: int = INDEX_FROM_BYTES) -> int:
    """Count the segments that wait for their index."""
    with store.logs.read() as connection:
        return len(select_lacking(connection, from_bytes=from_bytes))


def index_logs(store: Store, *, from_bytes: int = INDEX_FROM_BYTES) -> IndexResult:
    """Make what segments lack, the newest first.

    Raises:
        LeaseRefused: another process is at it.
        Unavailable: the disk is full; what was made is kept.
    """
    result = IndexResult()
    with held_lease(store, INDEX_LEASE) as owner:
        with store.logs.read() as connection:
            lacking = select_lacking(connection, from_bytes=from_bytes)
        for segment in lacking:
            words, values = _make(store, segment)
            with store.logs.transaction() as connection:
                renew_lease(connection, store, INDEX_LEASE, owner)
                # one that was compacted away meanwhile has no use for them: they are swept
                forget_companions(connection, [segment.id], to_us(store.now()))
                if not insert_companions(connection, [words, values]):
                    continue
            result = IndexResult(
                result.segments + 1,
                result.rows + segment.rows,
                result.words_bytes + words.bytes,
                result.values_bytes + values.bytes,
            )
    return result


def _make(store: Store, segment: Segment) -> tuple[Companion, Companion]:
    def key(kind: str) -> str:
        return f"{FOLDER}/{segment.workspace_id}/index/{kind}-{segment.id.hex}-{store.new_id().hex}.parquet"

    words, values = key(WORDS), key(VALUES)
    return (
        Companion(segment.id, WORDS, words, write_words(store.data, segment.key, words)),
        Companion(segment.id, VALUES, values, write_values(store.data, segment.key, values)),
    )


def forget_broken_index(store: Store) -> int:
    """Forget indexes and dictionaries whose file is missing or has another size; return of how many segments.

    `index_logs` makes them anew.
    """
    with store.logs.read() as connection:
        named = select_companions(connection)
    broken = {one.segment_id for one in named if not _is_whole(store, one)}
    with store.logs.transaction() as connection:
        forget_companions(connection, broken, to_us(store.now()))
    return len(broken)


def _is_whole(store: Store, companion: Companion) -> bool:
    path = store.data.path(companion.key)
    return path.exists() and path.stat().st_size == companion.bytes
