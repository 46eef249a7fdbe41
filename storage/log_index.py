"""The index of words and the dictionary of values of each segment: made after it, found by searches."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from storage.domain.log_files import FOLDER
from storage.domain.log_pace import INDEX_PATIENCE_US
from storage.domain.request_logs import to_us
from storage.engine.catalog import Connection
from storage.engine.data_root import file_sha256
from storage.engine.log_hits import broken_companions, is_as_made
from storage.engine.log_signs import write_signs
from storage.engine.log_values import write_values
from storage.engine.log_words import gather_words, write_words
from storage.engine.rows.log_companions import (
    SIGNS,
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
from storage.log_pace import is_pouring
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
    """Count the segments whose index is to be made now, or anew."""
    with store.logs.read() as connection:
        lacking = len(_lacking(store, connection, from_bytes))
        named = select_companions(connection)
    return lacking + len(broken_companions(store.data, named))


def _lacking(store: Store, connection: Connection, from_bytes: int) -> list[Segment]:
    """What is to be indexed now, the newest first; in a burst what compaction has left alone for long."""
    lacking = select_lacking(connection, from_bytes=from_bytes)
    if lacking and is_pouring(store, connection):
        old_us = to_us(store.now()) - INDEX_PATIENCE_US
        lacking = [segment for segment in lacking if segment.created_us <= old_us]
    return lacking


def index_logs(store: Store, *, from_bytes: int = INDEX_FROM_BYTES) -> IndexResult:
    """Make what segments lack, the newest first; what comes meanwhile, and a burst, are looked at in between.

    What is missing or cut off counts as lacking.

    Raises:
        LeaseRefused: another process is at it.
        Unavailable: the disk is full; what was made is kept.
    """
    result = IndexResult()
    with held_lease(store, INDEX_LEASE) as owner:
        forget_broken_index(store, look_inside=False)
        tried: set[UUID] = set()
        while (segment := _next(store, from_bytes, tried)) is not None:
            tried.add(segment.id)
            made = make_companions(store, segment)
            with store.logs.transaction() as connection:
                renew_lease(connection, store, INDEX_LEASE, owner)
                # one that was compacted away meanwhile has no use for them: they are swept
                forget_companions(connection, [segment.id], to_us(store.now()))
                if not insert_companions(connection, made):
                    continue
            result = IndexResult(
                result.segments + 1,
                result.rows + segment.rows,
                result.words_bytes + sum(one.bytes for one in made if one.kind != VALUES),
                result.values_bytes + sum(one.bytes for one in made if one.kind == VALUES),
            )
    return result


def _next(store: Store, from_bytes: int, tried: Collection[UUID]) -> Segment | None:
    with store.logs.read() as connection:
        lacking = _lacking(store, connection, from_bytes)
    return next((segment for segment in lacking if segment.id not in tried), None)


def make_companions(store: Store, segment: Segment) -> list[Companion]:
    """Write the index, the dictionary and the signs, if any, of a segment; whoever calls names them.

    Raises:
        Unavailable: the disk is full.
    """

    def key(kind: str) -> str:
        return f"{FOLDER}/{segment.workspace_id}/index/{kind}-{segment.id.hex}-{store.new_id().hex}.parquet"

    words, values, signs = key(WORDS), key(VALUES), key(SIGNS)
    with store.data.discarding(words, values, signs):
        gathered = gather_words(store.data, segment.key)
        sizes = {words: (WORDS, write_words(store.data, words, gathered.parts))}
        if gathered.signs:
            sizes[signs] = (SIGNS, write_signs(store.data, signs, gathered.signs))
        del gathered
        sizes[values] = (VALUES, write_values(store.data, segment.key, values))
    return [
        Companion(segment.id, kind, name, size, file_sha256(store.data.path(name)))
        for name, (kind, size) in sizes.items()
    ]


def forget_broken_index(store: Store, workspace_id: int | None = None, *, look_inside: bool = True) -> int:
    """Forget indexes and dictionaries that are not as they were made; return of how many segments.

    `index_logs` makes them anew. Looking inside reads each whole, which may take seconds; without it those
    count that are missing or have another size.
    """
    with store.logs.read() as connection:
        named = select_companions(connection, workspace_id)
    broken = broken_companions(store.data, named)
    if look_inside:
        broken |= {
            one.segment_id
            for one in named
            if one.segment_id not in broken and not is_as_made(store.data, one)
        }
    if broken:
        with store.logs.transaction() as connection:
            forget_companions(connection, broken, to_us(store.now()))
    return len(broken)
