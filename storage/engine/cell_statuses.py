"""How many cells of a column are stale, completed or failed, without reading what is known to be uniform."""

from collections import Counter
from collections.abc import Iterable, Mapping

from storage.domain.cells import CellStatus
from storage.domain.manifests import Fill, Part, Stored
from storage.domain.overlay import Patch
from storage.engine.segment_reader import SegmentReader
from storage.engine.sheet_rows import read_columns
from storage.engine.snapshots import Snapshot

Counts = Mapping[CellStatus, int]


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
    found: dict[int, CellStatus] = {}
    for row_no in row_nos:
        index = snapshot.manifest.find_index(row_no)
        if index is not None:
            ((written,),) = read_columns(reader, snapshot, [column_no], index, 1)
            found[row_no] = written[3].status
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
    counts: Counter[CellStatus] = Counter()
    step = 50_000
    for start in range(0, snapshot.manifest.row_count, step):
        (written,) = read_columns(reader, snapshot, [column_no], start, step)
        counts.update(state.status for _, _, _, state in written)
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
