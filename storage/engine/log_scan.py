"""Logs with their texts, many at a time: in the order of ids, or of a list of ids, in bounded memory.

What one question reads is sorted by DuckDB, so a question asks for few logs where logs are large, and each
file is read once, however the ids that are wanted lie among the files.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from storage.domain.log_columns import LOG_COLUMNS
from storage.domain.log_deletions import Gone
from storage.domain.request_logs import LogFilter
from storage.engine.data_root import DataRoot
from storage.engine.log_damage import damage_told
from storage.engine.log_reader import LogBatches, LogMoment
from storage.engine.log_sql import LOG_NAMES, arrow_ids, arrow_tail, duck, present, segments, spread
from storage.engine.rows.log_segments import Segment

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MEMORY = "300MB"
_MOST_ROWS, _FEWEST_ROWS = 16_384, 4
_CHUNK_BYTES, _SCATTERED_BYTES = 8 * 1_048_576, 64 * 1_048_576
"""Of compressed files: so much is sorted at once where the order is that of ids, and where it is another."""
_FETCHED_ROWS = 16
_BATCH_BYTES = 16 * 1_048_576


def scan_logs(data: DataRoot, moment: LogMoment, wanted: LogFilter, batch_rows: int) -> LogBatches:
    """Yield batches of the promised columns in the order that the filter asks for.

    A batch has at most `batch_rows` rows, and no more once it has 16 MB.

    Raises:
        DamagedFileError: a file is missing or damaged.
    """
    with damage_told(), duck(memory=MEMORY) as connection:
        connection.register("tail", arrow_tail(moment.tail))
        if moment.patches.rows:
            connection.register(moment.patches.relation, moment.patches.arrow())
        connection.register("deleted_logs", arrow_ids(moment.gone.ids))
        asked = _of_ids(data, moment, wanted) if wanted.ids is not None else _of_parts(data, moment, wanted)
        left = wanted.limit
        for query, parameters in asked:
            limit = "" if left is None else f" LIMIT {left:d}"
            for batch in _batches(connection, query + limit, parameters, batch_rows):
                if left is not None:
                    left -= batch.num_rows
                yield batch
            if left == 0:
                return


Question = tuple[str, list[Any]]


def _of_parts(data: DataRoot, moment: LogMoment, wanted: LogFilter) -> Iterator[Question]:
    # Segments span disjoint ids and the tail is newer than all: one part at a time is in order.
    where, parameters = _where(wanted, moment.gone)
    direction = "DESC" if wanted.newest_first else "ASC"
    parts: list[tuple[str, range]] = []
    for segment in moment.segments:
        select = _over(data, moment, [segment], segment.first_id, segment.last_id)
        parts += [(select, ids) for ids in _ranges(segment)]
    if moment.tail:
        first_id, last_id = moment.tail[0].id, moment.tail[-1].id
        select = moment.patches.over(spread("tail"), first_id=first_id, last_id=last_id)
        parts.append((select, range(first_id, last_id + 1)))
    for select, ids in reversed(parts) if wanted.newest_first else parts:
        of_ids = f"id BETWEEN {ids.start:d} AND {ids.stop - 1:d}"
        query = f"SELECT * FROM ({select}) l WHERE {of_ids} AND {where} ORDER BY id {direction}"  # noqa: S608
        yield query, parameters


def _ranges(segment: Segment) -> Iterator[range]:
    """The ids of a segment, cut so that each range holds what may be sorted at once."""
    span = segment.last_id - segment.first_id + 1
    step = max(1, span * min(_MOST_ROWS, _rows_of([segment], _CHUNK_BYTES)) // max(segment.rows, 1))
    for start in range(segment.first_id, segment.last_id + 1, step):
        yield range(start, min(start + step, segment.last_id + 1))


def _rows_of(some: Sequence[Segment], size: int) -> int:
    """How many logs of some files come to so many bytes there, by the file that has the largest."""
    largest = max((one.bytes / max(one.rows, 1) for one in some), default=1.0)
    return max(_FEWEST_ROWS, int(size / max(largest, 1.0)))


def _of_ids(data: DataRoot, moment: LogMoment, wanted: LogFilter) -> Iterator[Question]:
    ids = list(dict.fromkeys(wanted.ids or ()))
    where, parameters = _where(wanted, moment.gone)
    for some in _together(ids, moment.segments):
        in_order = sorted(some)
        hit = [segment for segment in moment.segments if _overlaps(segment, in_order)]
        part = _over(data, moment, hit, in_order[0], in_order[-1], tail=True)
        query = (
            f"SELECT l.* FROM ({part}) l "  # noqa: S608
            f"JOIN (SELECT unnest(?) AS id, generate_subscripts(?, 1) AS place) w ON l.id = w.id "
            f"WHERE l.id BETWEEN {in_order[0]:d} AND {in_order[-1]:d} AND {where} ORDER BY w.place"
        )
        yield query, [some, some, *parameters]


def _together(ids: list[int], all_segments: Sequence[Segment]) -> Iterator[list[int]]:
    """Ids that are read by one question.

    Where they rise or fall, a question reads its own part of the files. Else each reads the files anew: it is
    asked for as many as can be sorted.
    """
    in_order = sorted(ids)
    hit = [segment for segment in all_segments if _overlaps(segment, in_order)]
    if ids in (in_order, in_order[::-1]):
        step = min(_MOST_ROWS, _rows_of(hit, _CHUNK_BYTES))
    else:
        step = _rows_of(hit, _SCATTERED_BYTES)
    for start in range(0, len(ids), step):
        yield ids[start : start + step]


def _over(
    data: DataRoot,
    moment: LogMoment,
    some: Sequence[Segment],
    first_id: int,
    last_id: int,
    *,
    tail: bool = False,
) -> str:
    """SELECT over some files and, if said so, the tail; only logs of these ids are asked for."""
    select = segments([str(data.path(one.key)) for one in some], LOG_NAMES, LOG_COLUMNS)
    if tail:
        select = f"{select} UNION ALL {spread('tail')}"
    return moment.patches.over(select, first_id=first_id, last_id=last_id)


def _batches(
    connection: "duckdb.DuckDBPyConnection", query: str, parameters: list[Any], batch_rows: int
) -> LogBatches:
    """Fetch few rows at a time, as each may be large, and put them together."""
    import pyarrow as pa  # noqa: PLC0415

    fetched = connection.sql(query, params=parameters).to_arrow_reader(min(_FETCHED_ROWS, batch_rows))
    some: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in cast("Iterable[pa.RecordBatch]", fetched):
        if some and (rows + batch.num_rows > batch_rows or size >= _BATCH_BYTES):
            yield pa.concat_batches(some)
            some, rows, size = [], 0, 0
        some.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if some:
        yield pa.concat_batches(some)


def _overlaps(segment: Segment, ids: list[int]) -> bool:
    """Say whether a segment spans one of some sorted ids."""
    place = bisect_left(ids, segment.first_id)
    return place < len(ids) and ids[place] <= segment.last_id


def _where(wanted: LogFilter, gone: Gone) -> tuple[str, list[Any]]:
    tests = {
        "prompt_id = ?": wanted.prompt_id,
        "prompt_name = ?": wanted.prompt_name,
        "prompt_version_number = ?": wanted.prompt_version_number,
        "request_start_time >= ?": wanted.start_from,
        "request_start_time <= ?": wanted.start_to,
    }
    given = {test: value for test, value in tests.items() if value is not None}
    return " AND ".join([present(gone, of="l.id"), *given]), list(given.values())
