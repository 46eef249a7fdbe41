"""How many cells of a column are stale, completed or failed, without reading what is known to be uniform."""

from collections import Counter
from collections.abc import Callable, Iterable

from storage.domain.cells import CellStatus
from storage.domain.manifests import Fill, Part, Stored
from storage.domain.overlay import Patch
from storage.engine.segment_reader import SegmentReader
from storage.engine.sheet_rows import read_columns, row_numbers
from storage.engine.snapshots import Snapshot

_FEW_ROWS = 100
_STEP = 65_536


def count_statuses(reader: SegmentReader, snapshot: Snapshot, column_no: int) -> Counter[CellStatus]:
    """Count the cells of a computed column by status."""
    manifest = snapshot.manifest
    patches = _since_last_restated(snapshot, column_no)
    if patches is not None:
        whole, later = patches
        return _adjusted(reader, snapshot, column_no, Counter({whole: manifest.row_count}), whole, later)
    base: Counter[CellStatus] = Counter()
    for part in manifest.parts:
        base += _of_part(reader, part, column_no)
    uniform = next(iter(base)) if len(base) == 1 else None
    later = [one.patch for one in snapshot.overlay.patches]
    return _adjusted(reader, snapshot, column_no, base, uniform, later)


def rows_with_status(
    reader: SegmentReader, snapshot: Snapshot, column_no: int, row_nos: Iterable[int]
) -> dict[int, CellStatus]:
    """Return the status of single cells, by row number; rows that are gone are left out."""
    wanted = list(row_nos)
    if len(wanted) > _FEW_ROWS:
        return _many_with_status(reader, snapshot, column_no, set(wanted))
    found: dict[int, CellStatus] = {}
    for row_no in wanted:
        index = snapshot.manifest.find_index(row_no)
        if index is not None:
            ((written,),) = read_columns(reader, snapshot, [column_no], index, 1)
            found[row_no] = written[3].status
    return found


def _many_with_status(
    reader: SegmentReader, snapshot: Snapshot, column_no: int, row_nos: set[int]
) -> dict[int, CellStatus]:
    # the library of frames is slow to load, and most callers ask for a few rows
    from storage.engine.column_frames import read_statuses  # noqa: PLC0415

    found: dict[int, CellStatus] = {}
    for start in range(0, snapshot.manifest.row_count, _STEP):
        numbers = row_numbers(snapshot.manifest, start, _STEP)
        if row_nos.isdisjoint(numbers):
            continue
        statuses = read_statuses(reader, snapshot, column_no, start, len(numbers), computed=True)
        noted = zip(numbers, statuses.to_list(), strict=True)
        found.update((no, status) for no, status in noted if no in row_nos)
    return found


def _since_last_restated(snapshot: Snapshot, column_no: int) -> tuple[CellStatus, list[Patch]] | None:
    """Return the status that all rows were given last, and the patches laid on it; None: there is none."""
    patches = snapshot.overlay.patches
    parts = snapshot.manifest.parts
    for at in reversed(range(len(patches))):
        changed = patches[at].patch.restated.get(column_no)
        if changed is not None and parts and changed.end_row_no >= parts[-1].end_row_no:
            # its own entries lie on it as well
            return changed.state.status, [one.patch for one in patches[at:]]
    return None


def _adjusted(
    reader: SegmentReader,
    snapshot: Snapshot,
    column_no: int,
    counts: Counter[CellStatus],
    uniform: CellStatus | None,
    later: Iterable[Patch],
) -> Counter[CellStatus]:
    """Correct counts by what single entries say."""
    patches = list(later)
    touched = {row for patch in patches for row in patch.cells.get(column_no, ())}
    partly = any(column_no in patch.restated for patch in patches[1 if uniform else 0 :])
    if not touched and not partly:
        return counts
    if uniform is None or partly:
        return _read_all(reader, snapshot, column_no)
    now = rows_with_status(reader, snapshot, column_no, touched)
    counts = counts.copy()
    counts[uniform] -= len(now)
    counts.update(now.values())
    return +counts


def _read_all(reader: SegmentReader, snapshot: Snapshot, column_no: int) -> Counter[CellStatus]:
    from storage.engine.column_frames import read_statuses  # noqa: PLC0415

    counts: Counter[CellStatus] = Counter()
    for start in range(0, snapshot.manifest.row_count, _STEP):
        count = min(_STEP, snapshot.manifest.row_count - start)
        counts.update(read_statuses(reader, snapshot, column_no, start, count, computed=True).to_list())
    return counts


def _of_part(reader: SegmentReader, part: Part, column_no: int) -> Counter[CellStatus]:
    source = part.columns.get(column_no)
    if isinstance(source, Fill):
        return Counter({source.state.status: part.count})
    if not isinstance(source, Stored):
        return Counter({"stale": part.count})
    if source.notes is None:
        return Counter({"completed": part.count})
    return reader.count_statuses(source.segment, source.notes, source.start + part.offset, part.count)


def overlay_rows(
    reader: SegmentReader, snapshot: Snapshot, column_no: int, visits: Callable[[str], bool]
) -> list[int] | None:
    """Return the rows that patches wrote, if no other cell can have a status that is asked for; else None."""
    patches = [one.patch for one in snapshot.overlay.patches]
    if any(column_no in patch.restated for patch in patches):
        return None
    base: Counter[CellStatus] = Counter()
    for part in snapshot.manifest.parts:
        base += _of_part(reader, part, column_no)
    if any(visits(status) for status in base):
        return None
    return sorted({row for patch in patches for row in patch.cells.get(column_no, ())})
