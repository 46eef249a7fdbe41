"""Compaction: small files of logs become large ones, and what was deleted leaves the files."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from uuid import UUID

from storage.domain.log_compaction import REWRITE_AFTER, REWRITE_ROWS, Piece, plan_runs
from storage.domain.log_deletions import Gone
from storage.domain.log_pace import MERGE_PATIENCE_US
from storage.domain.request_logs import from_us, to_us
from storage.engine.checkpoints import empty_log
from storage.engine.log_patches import NONE, Patches
from storage.engine.log_rewrite import rewrite_logs, rewrite_scores
from storage.engine.rows.log_companions import Companion, insert_companions
from storage.engine.rows.log_deletions import (
    forget_deletions,
    raise_change,
    select_gone,
    select_keeping,
    select_waiting_deletions,
)
from storage.engine.rows.log_patches import forget_patches, select_patches
from storage.engine.rows.log_segments import (
    LOGS,
    SCORES,
    Segment,
    flushed_through,
    replace_segments,
    select_retired,
    select_segments,
)
from storage.leases import LeaseRefused, held_lease, renew_lease
from storage.log_flush import ORPHAN_AFTER, publish_views, sweep_log_files
from storage.log_index import INDEX_FROM_BYTES, make_companions
from storage.log_pace import is_pouring
from storage.store import Store

COMPACTION_LEASE = "compaction"


@dataclass(frozen=True, slots=True)
class Work:
    """Files of one workspace that become one, and the day (of their first log) that they belong to."""

    day: date
    old: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction did: rows, bytes and files before and after, logs that left the files."""

    rows_before: int = 0
    rows_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    files_before: int = 0
    files_after: int = 0
    deleted_rows: int = 0
    swept_files: int = 0

    def plus(self, old: Sequence[Segment], new: Sequence[Segment]) -> "CompactionResult":
        return replace(
            self,
            rows_before=self.rows_before + sum(segment.rows for segment in old),
            rows_after=self.rows_after + sum(segment.rows for segment in new),
            bytes_before=self.bytes_before + sum(segment.bytes for segment in old),
            bytes_after=self.bytes_after + sum(segment.bytes for segment in new),
            files_before=self.files_before + len(old),
            files_after=self.files_after + len(new),
        )


@dataclass(frozen=True, slots=True)
class _State:
    """One workspace at one moment: its segments, what is gone from them and patched.

    `rewrite`: what is gone must leave the files now; `fold`: patches must become part of them now.
    `scores_due`: files hold scores of logs that went with all that were older.
    `fresh_from_us`: as logs pour in, files made since then wait; None when they do not.
    """

    workspace_id: int
    logs: list[Segment]
    scores: list[Segment]
    gone: Gone
    patches: Patches
    flushed_through: int
    rewrite: bool
    fold: bool
    scores_due: bool
    fresh_from_us: int | None


def due_days(store: Store, *, rewrite_all: bool = False) -> list[date]:
    """The days that have something to compact, oldest first; `rewrite_all` waits with no deleted log."""
    states = list(_states(store, rewrite_all=rewrite_all))
    days = {work.day for state in states for work in _plan(store, state)}
    if _has_leftovers(store) or any(state.scores_due or _forgettable(state) for state in states):
        days.add(max(days, default=store.now().date()))
    return sorted(days)


def _has_leftovers(store: Store) -> bool:
    """Tell whether retired files may go."""
    with store.logs.read() as connection:
        retired = select_retired(connection)
    over_us = to_us(store.now() - ORPHAN_AFTER)
    return any(since_us < over_us for since_us in retired.values())


def compact_logs(store: Store, day: date | None = None, *, rewrite_all: bool = False) -> CompactionResult:
    """Rewrite what is due of a day (None: of all days) and publish the views.

    Files come first, then one transaction a file puts it in place of the old ones, which are removed late.

    Raises:
        LeaseRefused: another compaction is at work, or replaced the same files.
        Unavailable: the disk is full; what was done before is done.
    """
    result = CompactionResult()
    with held_lease(store, COMPACTION_LEASE) as owner:
        for state in _states(store, rewrite_all=rewrite_all):
            works = [work for work in _plan(store, state) if day in {None, work.day}]
            for work in works:
                new = _rewrite(store, owner, state, work)
                result = result.plus(work.old, new)
            _compact_scores(store, owner, state, works)
    publish_views(store, at_once=True)
    deleted, swept = result.rows_before - result.rows_after, sweep_log_files(store)
    if deleted or swept:  # deleted logs leave the files: they must not stay in the database either
        empty_log(store.logs.sqlite_path)
    return replace(result, deleted_rows=deleted, swept_files=swept)


def _states(store: Store, *, rewrite_all: bool) -> Iterator[_State]:
    now_us = to_us(store.now())
    old_us = to_us(store.now() - REWRITE_AFTER)
    with store.logs.read() as connection:
        named = select_segments(connection)
        waiting = select_waiting_deletions(connection)
        flushed = flushed_through(connection)
        pouring = is_pouring(store, connection)
        gone_us = {keeping.workspace_id: keeping.gone_us for keeping in select_keeping(connection)}
        workspaces = {segment.workspace_id for segment in named}
        gone = {one: select_gone(connection, one) for one in workspaces}
        patches = {one: Patches.of(select_patches(connection, one)) for one in workspaces}
    by_workspace = sorted(named, key=lambda segment: segment.workspace_id)
    for workspace_id, own in groupby(by_workspace, key=lambda segment: segment.workspace_id):
        segments = list(own)
        scores = [segment for segment in segments if segment.kind == SCORES]
        count, since_us = waiting.get(workspace_id, (0, now_us))
        yield _State(
            workspace_id,
            logs=[segment for segment in segments if segment.kind == LOGS],
            scores=scores,
            gone=gone[workspace_id],
            patches=patches[workspace_id],
            flushed_through=flushed,
            rewrite=rewrite_all or since_us < old_us or count >= REWRITE_ROWS,
            fold=rewrite_all or _is_due(patches[workspace_id], flushed, old_us),
            scores_due=any(one.created_us <= gone_us.get(workspace_id, 0) for one in scores),
            fresh_from_us=now_us - MERGE_PATIENCE_US if pouring else None,
        )


def _is_due(patches: Patches, flushed: int, old_us: int) -> bool:
    own = [row for row in patches.rows if row.request_id <= flushed]
    return len(own) >= REWRITE_ROWS or any(row.updated_us < old_us for row in own)


def _plan(store: Store, state: _State) -> list[Work]:
    pieces = [
        Piece(_day(segment), segment.bytes, _is_dirty(state, segment), _is_fresh(state, segment))
        for segment in state.logs
    ]
    runs = plan_runs(pieces, store.now().date())
    return [Work(pieces[run.start].day, tuple(state.logs[run.start : run.stop])) for run in runs]


def _day(segment: Segment) -> date:
    return from_us(segment.from_us or segment.created_us).date()


def _is_fresh(state: _State, segment: Segment) -> bool:
    return state.fresh_from_us is not None and segment.created_us > state.fresh_from_us


def _is_dirty(state: _State, segment: Segment) -> bool:
    if segment.first_id <= state.gone.through:
        return True
    ids = (segment.first_id, segment.last_id)
    return (state.rewrite and state.gone.touches(*ids)) or (state.fold and state.patches.touch(*ids))


def _rewrite(store: Store, owner: str, state: _State, work: Work) -> list[Segment]:
    first_id, last_id = work.old[0].first_id, work.old[-1].last_id
    patches = Patches.of([row for row in state.patches.rows if first_id <= row.request_id <= last_id])
    made = rewrite_logs(
        store.data,
        work.old,
        state.gone,
        patches,
        day=work.day.isoformat(),
        new_id=store.new_id,
        now_us=to_us(store.now()),
    )
    new = [made] if made else []
    _replace(store, owner, work.old, new, patches, _companions(store, made))
    return new


def _companions(store: Store, made: Segment | None) -> Sequence[Companion]:
    """Make what is named with a file, so that no search has to read a large one without its index."""
    if made is None or made.bytes < INDEX_FROM_BYTES:
        return ()
    with store.data.discarding(made.key):
        return make_companions(store, made)


def _replace(
    store: Store,
    owner: str,
    old: Sequence[Segment],
    new: Sequence[Segment],
    folded: Patches = NONE,
    companions: Sequence[Companion] = (),
) -> None:
    with store.logs.transaction() as connection:
        renew_lease(connection, store, COMPACTION_LEASE, owner)
        if not replace_segments(connection, old, new, to_us(store.now())):
            raise LeaseRefused("The same files were replaced by another process")
        if companions:
            insert_companions(connection, companions)
        forget_patches(connection, folded.rows)
        raise_change(connection, old[0].workspace_id)


def _compact_scores(store: Store, owner: str, state: _State, rewritten: Sequence[Work]) -> None:
    """Merge the files of scores, and forget the deleted logs that now stand in no file."""
    replaced = {segment.id for work in rewritten for segment in work.old}
    forget = _forgettable(state, replaced)
    pieces = [Piece(date.min, segment.bytes) for segment in state.scores]
    # A day that is not over: files of one size are merged once there are enough of them.
    all_of_them = pieces and (forget or state.scores_due)
    runs = [range(len(pieces))] if all_of_them else plan_runs(pieces, date.min)
    for run in runs:
        old = state.scores[run.start : run.stop]
        made = rewrite_scores(store.data, old, state.gone, new_id=store.new_id, now_us=to_us(store.now()))
        _replace(store, owner, old, [made] if made else [])
    if forget:
        with store.logs.transaction() as connection:
            forget_deletions(connection, state.workspace_id, forget)
            raise_change(connection, state.workspace_id)


def _forgettable(state: _State, replaced: Collection[UUID] = ()) -> list[int]:
    """Deleted logs that stand in no file any more, once some files were replaced."""
    if not state.rewrite:
        return []
    held = [(s.first_id, s.last_id) for s in state.logs if s.id not in replaced]
    flushed = state.gone.ids[: bisect_right(state.gone.ids, state.flushed_through)]
    starts = [first for first, _ in held]

    def is_held(log_id: int) -> bool:
        place = bisect_right(starts, log_id) - 1
        return place >= 0 and log_id <= held[place][1]

    return [log_id for log_id in flushed if not is_held(log_id)]
