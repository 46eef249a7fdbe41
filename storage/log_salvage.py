"""The manifest of the logs, made anew from the files when the log database was lost or harmed."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby

from storage.domain.log_files import plan_manifest
from storage.engine.log_salvage import FoundFile, find_files, read_scores, segment_of
from storage.engine.rows.log_deletions import raise_change
from storage.engine.rows.log_salvage import (
    LogState,
    insert_missing_scores,
    read_state,
    write_manifest,
    write_state,
)
from storage.engine.rows.log_segments import LOGS, SCORES, ScoreRow, Segment
from storage.leases import held_lease
from storage.log_compaction import COMPACTION_LEASE
from storage.log_flush import publish_views
from storage.log_index import INDEX_LEASE
from storage.log_pace import FLUSH_LEASE
from storage.store import Store


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the manifest now names, and scores that came back from files."""

    files: int
    rows: int
    scores: int


def rebuild_manifest(store: Store) -> Rebuilt:
    """Name the files that together hold each log once, and publish the views; the tail stays as it is.

    When the log database was lost, logs that were deleted in the last hours are back: files held them still.

    Raises:
        LeaseRefused: a flush, a compaction or an indexing is at work.
        FilesOverlap: two files hold the same logs, and it cannot be told which counts.
        ValueError: a file cannot be read.
    """
    with ExitStack() as stack:
        for name in (FLUSH_LEASE, COMPACTION_LEASE, INDEX_LEASE):
            stack.enter_context(held_lease(store, name))
        with store.logs.read() as connection:
            state = read_state(connection)
        segments = _chosen(store, list(find_files(store.data)), state)
        scores = _scores(store, segments)
        with store.logs.transaction() as connection:
            write_manifest(connection, segments)
            write_state(connection, _moved(state, segments))
            count = sum(insert_missing_scores(connection, rows) for rows in scores)
            for workspace_id in {segment.workspace_id for segment in segments}:
                raise_change(connection, workspace_id)
    publish_views(store, everything=True)
    return Rebuilt(len(segments), sum(one.rows for one in segments if one.kind == LOGS), count)


def _chosen(store: Store, found: list[FoundFile], state: LogState) -> list[Segment]:
    segments = []
    for kind in (LOGS, SCORES):
        files = [one for one in found if one.kind == kind and _counts(one, found, state)]
        files.sort(key=lambda one: one.workspace_id)
        for _, own in groupby(files, key=lambda one: one.workspace_id):
            by_key = {one.file.key: one for one in own}
            planned = plan_manifest([one.file for one in by_key.values()])
            segments += [segment_of(store.data, by_key[file.key]) for file in planned]
    return [segment for segment in segments if segment is not None]


def _counts(one: FoundFile, found: list[FoundFile], state: LogState) -> bool:
    """Say whether a file counts: the logs of one that a crash left before it was named are in the tail.

    Files with numbers that the database never gave were written after it: then all of them count.
    """
    next_number, through = (
        (state.next_id, state.flushed_through)
        if one.kind == LOGS
        else (state.score_change + 1, state.scores_through)
    )
    newest = max(other.file.last_id for other in found if other.kind == one.kind)
    return newest >= next_number or one.file.first_id <= through


def _moved(state: LogState, segments: list[Segment]) -> LogState:
    def last(kind: str) -> int:
        return max((segment.last_id for segment in segments if segment.kind == kind), default=0)

    return replace(
        state,
        next_id=max(state.next_id, last(LOGS) + 1),
        flushed_through=max(state.flushed_through, last(LOGS)),
        score_change=max(state.score_change, last(SCORES)),
        scores_through=max(state.scores_through, last(SCORES)),
    )


def _scores(store: Store, segments: list[Segment]) -> list[list[ScoreRow]]:
    keys: dict[int, list[str]] = {}
    for segment in segments:
        if segment.kind == SCORES:
            keys.setdefault(segment.workspace_id, []).append(segment.key)
    return [read_scores(store.data, workspace_id, own) for workspace_id, own in keys.items()]
