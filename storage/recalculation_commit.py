"""The results of one column, gathered while its run computes, and committed at once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import Self

from storage.domain.cells import COMPLETED, STALE, restated
from storage.domain.computed import MOST_PATCHED, MOST_PATCHED_BYTES, Computed, Stamp, latency_bound
from storage.domain.manifests import Manifest, SegmentRef
from storage.domain.overlay import KEPT, Entry, Overlay, Patch, Restated
from storage.domain.recalculations import DONE, Task
from storage.domain.relaid import Piece, with_results
from storage.domain.staleness import MOST_ROWS_ONE_BY_ONE, Rows
from storage.engine.catalog import Connection
from storage.engine.column_frames import bytes_of, standing_notes
from storage.engine.result_blocks import (
    changed_places,
    entries,
    failed_cells,
    segment_rows,
    untold_places,
)
from storage.engine.result_writer import ResultWriter
from storage.engine.rows.columns import find_column_by_no
from storage.engine.rows.operations import update_owned
from storage.engine.rows.recalculations import (
    delete_kept,
    set_fingerprint,
    set_task,
)
from storage.engine.rows.segments import insert_segments
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.rows.stale_marks import select_marked_rows
from storage.engine.sheet_rows import Written, read_columns
from storage.engine.snapshots import Snapshot, commit, insert_patch
from storage.operations import ClaimRefused
from storage.recalculation_jobs import Block, Job, own_frame
from storage.staleness import mark_dependents
from storage.store import Store

_FEW_ROWS = 100


@dataclass(slots=True)
class _Counts:
    completed: int = 0
    failed: int = 0
    cached: int = 0
    price: float = 0.0
    tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    latencies: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Held:
    """Results of a block that wait in memory; of its own cells it keeps those alone that failed.

    `untold` are the unchanged places that do not say yet that they are completed.
    """

    block: Block
    computed: Computed
    untold: Sequence[int]

    @classmethod
    def of(cls, block: Block, computed: Computed, untold: Sequence[int]) -> Self:
        return cls(replace(block, own=failed_cells(block.own, computed), sources={}), computed, untold)


@dataclass(slots=True)
class Gathered(AbstractContextManager["Gathered"]):
    """Takes the results of a job's blocks in order; files that were not committed are gone in the end."""

    store: Store
    job: Job
    digest: str = ""
    counts: _Counts = field(default_factory=_Counts)
    _held: list[_Held] = field(default_factory=list)
    _held_bytes: int = 0
    _tried: int = 0
    _unchanged: int = 0
    # of the unchanged, those that do not say yet that they are completed
    _untold: int = 0
    _changed: set[int] | None = field(default_factory=set)
    _writer: ResultWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.discard()

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.job.operation.id, self.job.sheet.version_count)

    def add(self, block: Block, computed: Computed) -> int:
        """Take the results of a block; many or long ones become files at once, others wait in memory.

        Return how many bytes they are.
        """
        self._count(computed)
        self._note_changed(block, computed)
        untold = untold_places(block.own, computed)
        self._tried += len(computed.places)
        self._unchanged += len(computed.unchanged)
        self._untold += len(untold)
        size = bytes_of(computed.values)
        if self._writer is not None:
            self._write(self._writer, block, computed)
            return size
        self._held.append(_Held.of(block, computed, untold))
        self._held_bytes += size
        # few rows from anywhere are no whole column, which a file is
        if self._tried > MOST_PATCHED or (self._held_bytes > MOST_PATCHED_BYTES and block.count):
            self._begin_files()
        return size

    def finish(self) -> None:
        """Decide on the form that the results are kept in, once all are there."""
        if self._writer is None and self._untold > MOST_PATCHED and not self._all:
            self._begin_files()
        if self._writer is not None:
            self._writer.finish()

    @property
    def _all(self) -> bool:
        """Whether every cell of the column was tried or found unchanged."""
        return self._tried + self._unchanged == self.job.row_count

    def _begin_files(self) -> None:
        self._writer = ResultWriter(self.store.data, self.job.sheet.id, self.store.new_id)
        for one in self._held:
            self._write(self._writer, one.block, one.computed)
        self._held.clear()

    def _write(self, writer: ResultWriter, block: Block, computed: Computed) -> None:
        own = own_frame(self.store, self.job, block.start, block.count)
        places = [place - block.start for place in block.places]
        standing = None
        rest: set[int] = set()
        if len(computed.places) < block.count:
            standing = standing_notes(
                self.store.segments, self.job.snapshot, self.job.column.no, block.start, block.count
            )
            rest = set(range(block.count)).difference(places[place] for place in computed.places)
            known = standing.is_not_null().to_list()
            rest -= {places[place] for place in computed.unchanged if known[places[place]]}
        others = self._read(block, rest)
        rows = segment_rows(own, places, computed, self.stamp, standing, others)
        writer.write(rows.values, rows.notes, rows.statuses)

    def _read(self, block: Block, rows: set[int]) -> list[tuple[int, Written]]:
        """Read cells of a block's range one by one, by place."""
        reader, snapshot, column_no = self.store.segments, self.job.snapshot, self.job.column.no
        if len(rows) > _FEW_ROWS:
            (found,) = read_columns(reader, snapshot, [column_no], block.start, block.count)
            return [(row, found[row]) for row in sorted(rows)]
        return [
            (row, read_columns(reader, snapshot, [column_no], block.start + row, 1)[0][0])
            for row in sorted(rows)
        ]

    def _count(self, computed: Computed) -> None:
        counts = self.counts
        counts.failed += len(computed.errors)
        counts.errors.update(error.code for error in computed.errors.values())
        counts.completed += len(computed.places) - len(computed.errors) + len(computed.unchanged)
        counts.cached += len(computed.cached) + len(computed.unchanged)
        for place, metrics in computed.metrics.items():
            if place not in computed.cached:
                counts.latencies[latency_bound(metrics.get("latency_ms", 0.0))] += 1
                counts.price += metrics.get("price", 0.0)
                counts.tokens += metrics.get("input_tokens", 0) + metrics.get("output_tokens", 0)

    def _note_changed(self, block: Block, computed: Computed) -> None:
        if self._changed is None:
            return
        places = changed_places(block.own, computed)
        if len(self._changed) + len(places) > MOST_ROWS_ONE_BY_ONE:
            self._changed = None
        else:
            self._changed.update(block.row_nos[place] for place in places)

    def task(self, seconds: float, *, done: bool, stopped: bool = False) -> Task:
        """Return the job's task as far as it is; one that was `stopped` is committed in part."""
        counts, task = self.counts, self.job.task
        tried = counts.completed + counts.failed
        return replace(
            task,
            # what turned stale again meanwhile is not this run's any more
            cell_count=tried if done and not stopped else max(self.job.visited, tried),
            state=DONE if done else "running",
            completed=counts.completed,
            failed=counts.failed,
            cached=counts.cached,
            seconds=seconds,
            price=counts.price,
            tokens=counts.tokens,
        )

    def commit(self, task: Task) -> None:
        """Publish the results with the progress, in one transaction.

        What turned stale since the job was read stays stale; what it reads then is not forgotten.

        Raises:
            ClaimRefused: the operation is no longer the run's; nothing was published.
        """
        store, job, now = self.store, self.job, self.store.now()
        with store.catalog.transaction() as connection:
            if not update_owned(connection, job.operation, {"updated_at": now}):
                raise ClaimRefused(f"operation {job.operation.no} was cancelled or taken over")
            set_task(connection, job.operation.no, task)
            delete_kept(connection, job.operation.no, job.column.no)
            sheet = find_sheet_by_no(connection, job.sheet.no)
            gone = sheet is None or find_column_by_no(connection, job.sheet.no, job.column.no) is None
            if sheet is None or gone or not (self._tried or self._unchanged):
                return
            head = store.snapshots.get(connection, sheet.head_no)
            marked = select_marked_rows(connection, job.column.no, job.mark)
            base, manifest, patch = self._laid(connection, head, marked, sheet.next_row_no, now)
            rows = None if self._changed is None else frozenset(self._changed)
            sound = not self.counts.failed and marked is not None and not marked
            if rows is None or rows:
                stale = mark_dependents(
                    connection, store, head, {job.column.no: rows}, now, next_row_no=sheet.next_row_no
                ).patch
                patch = Patch({**patch.cells, **stale.cells}, {**patch.restated, **stale.restated})
            new = head
            if manifest is not head.manifest or patch:
                laid = patch or None
                new = commit(connection, base, manifest, patch=laid, next_row_no=sheet.next_row_no, now=now)
            if sound and self._all:
                set_fingerprint(connection, job.column.no, job.fingerprint(self.digest, new))
        # from here on the files are the snapshot's
        self._writer = None

    def _laid(
        self, connection: Connection, head: Snapshot, marked: Rows, next_row_no: int, now: datetime
    ) -> tuple[Snapshot, Manifest, Patch]:
        if self._writer is None:
            return head, head.manifest, self._patch(marked, now)
        job, segments = self.job, self._writer.segments
        insert_segments(connection, head.sheet_no, segments, now)
        pieces = [
            Piece(SegmentRef(one.key, tuple(field.encoding for field in one.fields), now), one.first_row)
            for one in segments
        ]
        manifest = with_results(head.manifest, job.snapshot.manifest, job.column.no, pieces)
        base = replace(head, overlay=_without_column(connection, head, job.column.no, now))
        if marked is None:
            return base, manifest, Patch({}, {job.column.no: Restated(STALE, next_row_no)})
        outdated = {row: Entry(KEPT, now, STALE) for row in marked}
        return base, manifest, Patch({job.column.no: outdated} if outdated else {})

    def _patch(self, marked: Rows, now: datetime) -> Patch:
        found: dict[int, Entry] = {}
        whole = self._untold > MOST_PATCHED
        for one in self._held:
            if not whole:
                found |= {one.block.row_nos[at]: Entry(KEPT, now, COMPLETED) for at in one.untold}
            found.update(entries(one.block.own, one.block.row_nos, one.computed, self.stamp, now))
        for row, entry in found.items():
            if marked is None or row in marked:
                found[row] = replace(entry, state=restated(entry.state, STALE))
        column_no = self.job.column.no
        changed: Mapping[int, Restated] = {}
        if whole:
            changed = {column_no: Restated(STALE if marked is None else COMPLETED, self._counter())}
            for row in marked or ():
                found.setdefault(row, Entry(KEPT, now, STALE))
        return Patch({column_no: found} if found else {}, changed)

    def _counter(self) -> int:
        """Return the number after the last row that the job saw."""
        parts = self.job.snapshot.manifest.parts
        return parts[-1].end_row_no if parts else 0


def _without_column(connection: Connection, head: Snapshot, column_no: int, now: datetime) -> Overlay:
    """Return a sheet's overlay without what it says of a column, which stands in a segment now."""
    kept = []
    for one in head.overlay.patches:
        cells, changed = one.patch.cells, one.patch.restated
        if column_no not in cells and column_no not in changed:
            kept.append(one)
            continue
        patch = Patch(
            {no: entries for no, entries in cells.items() if no != column_no},
            {no: state for no, state in changed.items() if no != column_no},
        )
        if patch:
            kept.append(insert_patch(connection, head.sheet_no, patch, now))
    return Overlay(tuple(kept))
