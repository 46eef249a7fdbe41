"""One column of a recalculation as its run reads it: cells to visit, and what they are computed from."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from uuid import UUID

from storage.column_binding import source_nos
from storage.domain.column_types import ASK_MODELS
from storage.domain.columns import Column
from storage.domain.graph import chosen_sources
from storage.domain.operations import Operation
from storage.domain.recalculations import Recalculation, Task, Wanted
from storage.domain.sheets import Sheet
from storage.engine.catalog import Connection
from storage.engine.cell_statuses import count_statuses, overlay_rows, rows_with_status
from storage.engine.column_frames import ColumnFrame, bytes_of, null_frame, read_frame
from storage.engine.fingerprints import fingerprint
from storage.engine.picking import joined_frames, picked
from storage.engine.read_ahead import read_next
from storage.engine.rows.column_edges import select_places, select_sources
from storage.engine.rows.columns import find_column_by_no, select_columns
from storage.engine.rows.recalculations import find_fingerprints, find_recalculation_by_no, has_older_open
from storage.engine.rows.sheets import find_sheet_by_no
from storage.engine.rows.stale_marks import last_mark
from storage.engine.sheet_rows import row_numbers
from storage.engine.snapshots import Snapshot
from storage.engine.stretches import stretches
from storage.mirrors import stale_states
from storage.operations import ClaimRefused
from storage.store import Store

CHUNK_ROWS = 16 * 4_096
FEW_ROWS = 300
# values that are read for a block, for what is made of them takes several times as much
BLOCK_BYTES = 16 << 20
# while a block as small as this is computed the next one is read; of larger ones memory holds one
_LIGHT_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A column that is read: as the run found it; `snapshot` None means that it is gone."""

    column_id: UUID
    title: str
    no: int
    computed: bool
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Reading:
    """A column as it is read to be computed; `places` are the row indices to visit where they are few."""

    wanted: Wanted
    task: Task
    column: Column
    sheet: Sheet
    snapshot: Snapshot
    sources: tuple[Source, ...]
    visited: int
    places: tuple[int, ...] | None
    mark: int
    # what is said of a column that is read and gone
    missing: str | None

    @property
    def row_count(self) -> int:
        return self.snapshot.manifest.row_count

    def fingerprint(self, digest: str, snapshot: Snapshot | None = None) -> str:
        """Return what the column, as a snapshot has it, and what it reads are known by."""
        read = [(one.snapshot, one.no) for one in self.sources if one.snapshot is not None]
        return fingerprint(digest, [(snapshot or self.snapshot, self.column.no), *read])


@dataclass(frozen=True, slots=True)
class Job(Reading):
    """The computation of one column by a run of an operation."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that a job visits, out of `count` rows from index `start` on.

    `places` are their row indices; `own` and `sources` (by column id) hold their cells.
    """

    start: int
    count: int
    places: Sequence[int]
    row_nos: Sequence[int]
    own: ColumnFrame
    sources: dict[UUID, ColumnFrame]

    @property
    def bytes(self) -> int:
        """About how much memory its values take."""
        return sum(bytes_of(one.values) for one in (self.own, *self.sources.values()))

    def split(self, most: int) -> "tuple[Block, Block | None]":
        """Return the first visited rows, so many, and the rest."""
        if len(self.places) <= most:
            return self, None
        # of few rows from anywhere no range is told
        end = self.places[most] if self.count else self.start
        rest = self.start + self.count - end
        return self._cut(0, most, self.start, end - self.start), self._cut(
            most, len(self.places) - most, end, rest
        )

    def _cut(self, first: int, rows: int, start: int, count: int) -> "Block":
        return Block(
            start,
            count,
            self.places[first : first + rows],
            self.row_nos[first : first + rows],
            self.own.slice(first, rows),
            {one: frame.slice(first, rows) for one, frame in self.sources.items()},
        )


@dataclass(frozen=True, slots=True)
class Order:
    """Which columns of a recalculation stand behind which others of it, and which of them ask models."""

    behind: Mapping[int, frozenset[int]]
    asking: frozenset[int]


def get_order(store: Store, operation: Operation, column_nos: Sequence[int]) -> Order:
    """Return in which order columns of a sheet can be computed, as they read each other now."""
    with store.catalog.read() as connection:
        reads = select_sources(connection, column_nos)
        columns = select_columns(connection, operation.sheet_no or 0)
    asking = frozenset(column.no for column in columns if column.runner in ASK_MODELS)
    return Order(chosen_sources(reads, column_nos), asking)


def get_recalculation_of(store: Store, operation: Operation) -> Recalculation:
    """Return a claimed recalculation as it stands.

    Raises:
        ClaimRefused: it is gone.
    """
    with store.catalog.read() as connection:
        found = find_recalculation_by_no(connection, operation.no)
    if found is None:
        raise ClaimRefused(f"operation {operation.no} is no recalculation")
    return found


def is_turn(store: Store, no: int) -> bool:
    """Say whether the recalculations of its sheet that were asked for before have ended.

    Raises:
        ClaimRefused: it has ended itself.
    """
    with store.catalog.read() as connection:
        found = find_recalculation_by_no(connection, no)
        if found is None or found.operation.ended:
            raise ClaimRefused(f"operation {no} has ended")
        return not has_older_open(connection, found.operation.sheet_no or 0, no)


def open_job(store: Store, operation: Operation, wanted: Wanted, task: Task) -> Job | None:
    """Read what a column is computed from, at one moment; None where the column or the sheet is gone."""
    read = read_column(store, operation.sheet_no or 0, wanted, task)
    if read is None:
        return None
    return Job(**{one.name: getattr(read, one.name) for one in fields(read)}, operation=operation)


def read_column(store: Store, sheet_no: int, wanted: Wanted, task: Task) -> Reading | None:
    """As `open_job`, for nobody's run."""
    with store.catalog.read() as connection:
        sheet = find_sheet_by_no(connection, sheet_no)
        column = None if sheet is None else find_column_by_no(connection, sheet.no, task.column_no)
        if sheet is None or column is None:
            return None
        snapshot = store.snapshots.get(connection, sheet.head_no)
        sources = _sources(connection, store, column, snapshot)
        missing = None
        if any(one.snapshot is None for one in sources):
            missing = _missing_message(connection, column)
        mark = last_mark(connection)
    visited, places = _visited(store, snapshot, wanted, column.no)
    return Reading(wanted, task, column, sheet, snapshot, sources, visited, places, mark, missing)


def is_unchanged(store: Store, job: Reading, digest: str) -> bool:
    """Say whether all cells surely hold what they should: they did, and nothing that they read has moved."""
    if job.wanted.force or job.wanted.row_nos is not None or job.visited < job.row_count:
        return False
    with store.catalog.read() as connection:
        known = find_fingerprints(connection, [job.column.no])
    return known.get(job.column.no) == job.fingerprint(digest)


def _sources(connection: Connection, store: Store, column: Column, snapshot: Snapshot) -> tuple[Source, ...]:
    nos = source_nos(connection, column.dependencies)
    places = select_places(connection, nos)
    by_id = {place.id: place for place in places.values()}
    heads: dict[int, Snapshot] = {snapshot.sheet_no: snapshot}
    found = []
    for one in column.source_ids:
        place = by_id.get(one)
        if place is None:
            found.append(Source(one, "", 0, computed=False, snapshot=None))
            continue
        if place.sheet_no not in heads:
            other = find_sheet_by_no(connection, place.sheet_no)
            if other is not None:
                heads[place.sheet_no] = store.snapshots.get(connection, other.head_no)
        computed = place.type != "text"
        found.append(Source(one, place.title, place.no, computed, heads.get(place.sheet_no)))
    return tuple(found)


def _missing_message(connection: Connection, column: Column) -> str:
    state = stale_states(connection, [column.no]).get(column.no)
    return (state and state.error_message) or "A column that this one reads is gone"


def _visited(
    store: Store, snapshot: Snapshot, wanted: Wanted, column_no: int
) -> tuple[int, tuple[int, ...] | None]:
    """Return how many cells are visited, and their row indices where they are few and known."""
    candidates: Sequence[int] | None = wanted.row_nos
    if candidates is None:
        counts = count_statuses(store.segments, snapshot, column_no)
        visited = sum(count for status, count in counts.items() if wanted.visits(status))
        if visited > FEW_ROWS:
            return visited, None
        candidates = overlay_rows(store.segments, snapshot, column_no, wanted.visits)
        if candidates is None:
            return visited, None
    elif len(candidates) > FEW_ROWS:
        return len(candidates), None
    statuses = rows_with_status(store.segments, snapshot, column_no, candidates)
    found = sorted(no for no, status in statuses.items() if wanted.visits(status))
    indices = [snapshot.manifest.find_index(no) for no in found]
    places = tuple(index for index in indices if index is not None)
    return len(places), places


def blocks(store: Store, job: Reading, most_rows: int = CHUNK_ROWS) -> Generator[Block]:
    """Yield the rows to visit, in order: a block holds those of so many rows and BLOCK_BYTES."""
    if job.places is not None:
        if job.places:
            yield _few(store, job, job.places)
        return
    if not job.visited:
        return
    rows = None if job.wanted.row_nos is None else set(job.wanted.row_nos)
    held = [(one.snapshot, one.no) for one in job.sources if one.snapshot is not None]
    held.append((job.snapshot, job.column.no))
    ranges = stretches(store.segments, held, job.row_count, most_rows, BLOCK_BYTES)
    yield from read_next(
        (partial(read_block, store, job, start, count, rows) for start, count in ranges),
        lambda block: block.bytes <= _LIGHT_BYTES,
    )


def read_block(store: Store, job: Reading, start: int, count: int, rows: set[int] | None) -> Block:
    """Read the rows to visit out of a range."""
    own = own_frame(store, job, start, count)
    numbers = row_numbers(job.snapshot.manifest, start, count)
    chosen = picked(own, job.wanted.statuses, numbers, rows)
    sources: dict[UUID, ColumnFrame] = {}
    if len(chosen):
        sources = {one.column_id: _source_frame(store, one, start, count) for one in job.sources}
    if len(chosen) < count:
        sources = {column_id: frame.gather(chosen) for column_id, frame in sources.items()}
    if len(chosen) == count:
        return Block(start, count, range(start, start + count), numbers, own, sources)
    offsets = chosen.to_list()
    return Block(
        start,
        count,
        [start + at for at in offsets],
        [numbers[at] for at in offsets],
        own.gather(chosen),
        sources,
    )


def own_frame(store: Store, job: Reading, start: int, count: int) -> ColumnFrame:
    """Read the column's own cells of a range, as the run found them."""
    return read_frame(store.segments, job.snapshot, job.column.no, start, count, computed=True)


def _source_frame(store: Store, source: Source, start: int, count: int) -> ColumnFrame:
    if source.snapshot is None:
        return null_frame(count)
    return read_frame(
        store.segments, source.snapshot, source.no, start, count, computed=source.computed, hashed=False
    )


def _few(store: Store, job: Reading, places: Sequence[int]) -> Block:
    own = joined_frames([own_frame(store, job, place, 1) for place in places])
    sources = {
        one.column_id: joined_frames([_source_frame(store, one, place, 1) for place in places])
        for one in job.sources
    }
    manifest = job.snapshot.manifest
    row_nos = [next(manifest.spans(place, 1)).first_row_no for place in places]
    return Block(places[0], 0, places, row_nos, own, sources)
