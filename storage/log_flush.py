"""From the tail of the logs to Parquet: flush, publish views, sweep, verify."""

import time
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from storage.domain.keys import Workspace
from storage.domain.log_columns import LOG_COLUMNS
from storage.domain.log_files import FOLDER
from storage.domain.log_flush import FlushPlan, plan_flush
from storage.domain.request_logs import to_us
from storage.engine.log_patches import Patches
from storage.engine.log_segments import (
    count_rows,
    find_fault,
    write_log_segments,
    write_score_segments,
)
from storage.engine.log_views import deleted_prefix, patches_prefix, publish_view_file, view_key
from storage.engine.rows.log_deletions import select_gone, select_keeping
from storage.engine.rows.log_patches import PatchRow, forget_patches, select_patches
from storage.engine.rows.log_segments import (
    LOGS,
    Segment,
    Shown,
    flushed_through,
    forget_retired,
    insert_segments,
    is_lease_held,
    last_published_us,
    last_tail_id,
    mark_published,
    move_flushed,
    move_scores,
    read_tail_state,
    scores_through,
    select_changed_scores,
    select_chunk,
    select_companion_keys,
    select_retired,
    select_segments,
    select_views_behind,
    select_wanted_views,
    trim_tail,
)
from storage.engine.rows.log_tail import TailRow, forget_idempotency_keys
from storage.engine.rows.workspaces import select_workspaces
from storage.leases import LeaseRefused, held_lease, renew_lease
from storage.log_pace import FLUSH_LEASE
from storage.store import Store

VIEWS_LEASE = "views"
MAX_SEGMENT_ROWS = 65_536
MAX_SCORE_ROWS = 500_000
TRIM_ROWS = 512
TRIM_REST_S = 0.02
PUBLISH_EVERY_S = 5.0
ORPHAN_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class FlushResult:
    """What a flush did: logs moved, bytes of the files written, files, and the columns they have."""

    rows: int
    bytes: int
    segments: int
    workspaces: int
    scores: int
    published: int
    columns: dict[str, str]

    def plus(self, later: "FlushResult") -> "FlushResult":
        """What both did, one after the other."""
        return FlushResult(
            rows=self.rows + later.rows,
            bytes=self.bytes + later.bytes,
            segments=self.segments + later.segments,
            workspaces=max(self.workspaces, later.workspaces),
            scores=self.scores + later.scores,
            published=self.published + later.published,
            columns=later.columns,
        )


@dataclass(frozen=True, slots=True)
class LogRows:
    """Logs in the manifest and in its files, and segments whose ids overlap with another's."""

    named: int
    in_files: int
    overlapping: int


def flush_plan(store: Store) -> FlushPlan:
    """Say whether a flush or a publication is due now."""
    now_us = to_us(store.now())
    with store.logs.read() as connection:
        tail = read_tail_state(connection)
        at_work = is_lease_held(connection, FLUSH_LEASE, now_us)
    return plan_flush(
        tail,
        now_us=now_us,
        flush_bytes=store.settings.flush_bytes,
        flush_after_s=store.settings.flush_after_s,
        at_work=at_work,
    )


def flush_logs(store: Store) -> FlushResult:
    """Move what the tail holds now into segments, then publish the views.

    Raises:
        LeaseRefused: another flush is at work.
        Unavailable: the disk is full; what was moved before is moved.
    """
    with held_lease(store, FLUSH_LEASE) as owner:
        if store.settings.log_writer == "local":
            _trim(store)
        with store.logs.read() as connection:
            last = last_tail_id(connection)
        written: list[Segment] = []
        while (chunk := _flush_chunk(store, owner, last)) is not None:
            written += chunk
        scored = _flush_scores(store, owner)
        with store.logs.transaction() as connection:
            forget_idempotency_keys(connection, to_us(store.now()))
    published = publish_views(store)
    return FlushResult(
        rows=sum(segment.rows for segment in written),
        bytes=sum(segment.bytes for segment in written),
        segments=len(written),
        workspaces=len({segment.workspace_id for segment in written}),
        scores=scored,
        published=published,
        columns={column.name: column.type for column in LOG_COLUMNS},
    )


def _flush_chunk(store: Store, owner: str, last: int) -> list[Segment] | None:
    """Move the oldest logs: files first, then one transaction that names them and forgets the tail's rows.

    None: there was nothing to move.
    """
    with store.logs.read() as connection:
        base = flushed_through(connection)
        rows = select_chunk(
            connection,
            after=base,
            through=last,
            max_rows=MAX_SEGMENT_ROWS,
            max_bytes=store.settings.flush_bytes,
        )
        gone = {keeping.workspace_id: keeping.gone_through for keeping in select_keeping(connection)}
        patches = select_patches(connection, first_id=rows[0].id, last_id=rows[-1].id) if rows else []
    written: list[Segment] | None = None
    if rows:
        # logs of a workspace that were deleted as a whole never reach a file
        kept = [row for row in rows if row.id > gone.get(row.workspace_id, 0)]
        written = write_log_segments(
            store.data, kept, new_id=store.new_id, now_us=to_us(store.now()), patches=patches
        )
        _name(store, owner, base, rows, written, patches)
    return written


def _name(
    store: Store,
    owner: str,
    base: int,
    rows: list[TailRow],
    written: list[Segment],
    patches: list[PatchRow],
) -> None:
    size = sum(len(row.body) for row in rows)
    with store.logs.transaction() as connection:
        renew_lease(connection, store, FLUSH_LEASE, owner)
        insert_segments(connection, written)
        forget_patches(connection, patches)
        if not move_flushed(connection, base=base, through=rows[-1].id, size=size):
            raise LeaseRefused("Another flush moved the tail")


def _trim(store: Store) -> None:
    """Remove what earlier flushes left in the tail, where no process is there to do it between its groups."""
    while True:
        with store.logs.transaction() as connection:
            removed = trim_tail(connection, TRIM_ROWS)
        if removed < TRIM_ROWS:
            return
        # SQLite's lock is not fair, and whoever logs must not wait for all of it
        time.sleep(TRIM_REST_S)


def _flush_scores(store: Store, owner: str) -> int:
    with store.logs.read() as connection:
        base = scores_through(connection)
        rows = select_changed_scores(connection, MAX_SCORE_ROWS)
    if not rows:
        return 0
    written = write_score_segments(store.data, rows, new_id=store.new_id, now_us=to_us(store.now()))
    with store.logs.transaction() as connection:
        renew_lease(connection, store, FLUSH_LEASE, owner)
        insert_segments(connection, written)
        if not move_scores(connection, base=base, through=rows[-1].change):
            raise LeaseRefused("Another flush moved the scores")
    return len(rows)


def publish_views(store: Store, *, everything: bool = False, at_once: bool = False) -> int:
    """Write the view files that are behind, at most every 5 s; return how many.

    `everything` writes all of them now: at start, as the home folder may have been moved. `at_once` waits for
    nothing: logs were deleted.
    """
    try:
        with held_lease(store, VIEWS_LEASE):
            return _publish(store, everything=everything, at_once=at_once)
    except LeaseRefused:  # they are being published; what is then still behind stays due
        return 0


def _publish(store: Store, *, everything: bool, at_once: bool) -> int:
    with store.catalog.read() as connection:
        workspaces = select_workspaces(connection)
    with store.logs.read() as connection:
        behind = select_views_behind(connection)
        lately = to_us(store.now()) - last_published_us(connection) < PUBLISH_EVERY_S * 1_000_000
    published = 0
    for workspace in workspaces:
        missing = not store.data.path(view_key(workspace.name)).exists()
        if everything or missing or (workspace.id in behind and (at_once or not lately)):
            _publish_one(store, workspace)
            published += 1
    return published


def _publish_one(store: Store, workspace: Workspace) -> None:
    now, file_id = store.now(), store.new_id()
    with store.logs.read() as connection:
        named = select_segments(connection, workspace_id=workspace.id)
        patches = Patches.of(select_patches(connection, workspace.id))
        gone = select_gone(connection, workspace.id)
        shown = select_wanted_views(connection).get(workspace.id, Shown())
    publish_view_file(store.data, workspace.name, named, now, patches=patches, gone=gone, file_id=file_id)
    with store.logs.transaction() as connection:
        mark_published(connection, workspace.id, shown, now_us=to_us(now))
    _forget_files_beside(store, workspace.name, file_id)


def _forget_files_beside(store: Store, workspace: str, shown: UUID) -> None:
    """Remove files that an older view file read beside the segments, once nobody reads it any more."""
    old = store.data.files("views", before_epoch_s=(store.now() - ORPHAN_AFTER).timestamp())
    for key in old:
        if key.startswith((patches_prefix(workspace), deleted_prefix(workspace))) and shown.hex not in key:
            store.data.remove(key)


def find_segment_faults(store: Store) -> dict[str, str]:
    """Compare every file with the manifest; what is wrong, by key."""
    with store.logs.read() as connection:
        named = select_segments(connection)
    faults = {segment.key: find_fault(store.data, segment) for segment in named}
    return {key: fault for key, fault in faults.items() if fault}


def oldest_waiting_s(store: Store) -> float:
    """For how many seconds the oldest log or score has waited for a flush; 0 when nothing waits."""
    with store.logs.read() as connection:
        oldest_us = read_tail_state(connection).oldest_us
    return 0.0 if oldest_us is None else max(0.0, (to_us(store.now()) - oldest_us) / 1e6)


def count_log_rows(store: Store) -> LogRows:
    """Count the logs that the manifest names and those that files' footers tell, and compare their ids."""
    with store.logs.read() as connection:
        named = select_segments(connection, kind=LOGS)
    own: dict[int, int] = {}
    overlapping = 0
    for segment in named:  # in the order of first ids
        overlapping += segment.first_id <= own.get(segment.workspace_id, 0)
        own[segment.workspace_id] = max(segment.last_id, own.get(segment.workspace_id, 0))
    in_files = sum(count_rows(store.data, segment) for segment in named)
    return LogRows(sum(segment.rows for segment in named), in_files, overlapping)


def sweep_log_files(store: Store) -> int:
    """Remove files of logs that nothing names, once they are old enough that nobody reads or writes them."""
    oldest_kept = (store.now() - ORPHAN_AFTER).timestamp()
    files = store.data.files(FOLDER, before_epoch_s=oldest_kept)
    with store.logs.read() as connection:
        retired = select_retired(connection)
        named = {segment.key for segment in select_segments(connection)}
        named |= select_companion_keys(connection)
    # those who took the manifest before a file was retired finish reading it
    over = [key for key, since_us in retired.items() if since_us < oldest_kept * 1_000_000]
    kept = named | (retired.keys() - set(over))
    orphans = [key for key in files if key not in kept]
    for key in orphans:
        store.data.remove(key)
    with store.logs.transaction() as connection:
        forget_retired(connection, over)
    return len(orphans)
