"""Rewrites segments of logs and scores into one file, without what was deleted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import duckdb

from storage.domain.log_columns import LOG_COLUMNS
from storage.domain.log_deletions import Gone
from storage.engine.data_root import DataRoot, file_sha256
from storage.engine.facet_sql import register_facets, with_facets
from storage.engine.log_patches import Patches
from storage.engine.log_segments import blank_segment, write_segment
from storage.engine.log_sql import LOG_NAMES, arrow_ids, duck, present, quoted, segments
from storage.engine.rows.log_segments import Segment


class LogsMissing(RuntimeError):
    """A rewritten file does not hold what the old ones held: it must not take their place."""


class LogsDamaged(RuntimeError):
    """A file to be rewritten is not what was written: what it holds now must not get a new checksum."""


def rewrite_logs(
    data: DataRoot,
    old: Sequence[Segment],
    gone: Gone,
    patches: Patches,
    *,
    day: str,
    new_id: Callable[[], UUID],
    now_us: int,
) -> Segment | None:
    """Write neighbours in the order of ids as one file in the folder of a day; None when all logs are gone.

    Patches become part of the logs that they speak of.

    Raises:
        LogsDamaged: a file is not as it was written.
        LogsMissing: it has more or fewer logs than it should.
        Unavailable: the disk is full.
    """
    _check_unchanged(data, old)
    files = segments([str(data.path(segment.key)) for segment in old], LOG_NAMES, LOG_COLUMNS)
    with _without(gone) as connection:
        # Each file is sorted and they are read in their order, so that nothing need be sorted again.
        query, order = f"SELECT * FROM ({files}) WHERE {present(gone)}", ""  # noqa: S608
        if patches.touch(old[0].first_id, old[-1].last_id):
            connection.register(patches.relation, patches.arrow())
            query = patches.joined(query)
            order = " ORDER BY id"
        # made anew: files of an older release lack the facts of answers
        register_facets(connection)
        made = _write(connection, data, with_facets(query) + order, "id", old, day, new_id(), now_us)
        dropped = f"SELECT count(*) FROM ({files}) WHERE NOT ({present(gone)})"  # noqa: S608
        expected = sum(segment.rows for segment in old) - _count(connection, dropped)
    if (made.rows if made else 0) != expected:
        raise LogsMissing(f"{made and made.key}: {expected} logs were to be written")
    return made and replace(
        made,
        from_us=min(segment.from_us or segment.created_us for segment in old),
        to_us=max(segment.to_us or segment.created_us for segment in old),
    )


def rewrite_scores(
    data: DataRoot, old: Sequence[Segment], gone: Gone, *, new_id: Callable[[], UUID], now_us: int
) -> Segment | None:
    """Write segments of scores as one file, only the last change of each; None when none is left.

    Raises:
        LogsDamaged: a file is not as it was written.
        Unavailable: the disk is full.
    """
    _check_unchanged(data, old)
    files = ", ".join(quoted(str(data.path(segment.key))) for segment in old)
    query = (
        f"SELECT * FROM read_parquet([{files}]) WHERE {present(gone, of='request_id')} "  # noqa: S608
        "QUALIFY row_number() OVER (PARTITION BY request_id, name ORDER BY change DESC) = 1 ORDER BY change"
    )
    with _without(gone) as connection:
        return _write(connection, data, query, "change", old, "", new_id(), now_us)


def _check_unchanged(data: DataRoot, old: Sequence[Segment]) -> None:
    for segment in old:
        path = data.path(segment.key)
        if not path.exists() or file_sha256(path) != segment.sha256:
            raise LogsDamaged(f"{segment.key} is missing, or its checksum is not the manifest's")


def _write(
    connection: duckdb.DuckDBPyConnection,
    data: DataRoot,
    query: str,
    number: str,
    old: Sequence[Segment],
    folder: str,
    new_id: UUID,
    now_us: int,
) -> Segment | None:
    ends = f"SELECT min({number}), max({number}) FROM ({query})"  # noqa: S608
    first, last = connection.execute(ends).fetchone() or (None, None)
    if first is None:
        return None
    blank = blank_segment(new_id, old[0].workspace_id, old[0].kind, (first, last), now_us, folder=folder)
    span = (min(one.first_id for one in old), max(one.last_id for one in old))
    # compressed: texts take some four times as much
    row_bytes = 4 * sum(one.bytes for one in old) // max(1, sum(one.rows for one in old))
    return write_segment(connection, data, query, blank, instead_of=span, row_bytes=row_bytes)


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    return int((connection.execute(query).fetchone() or (0,))[0])


@contextmanager
def _without(gone: Gone) -> Iterator[duckdb.DuckDBPyConnection]:
    with duck() as connection:
        connection.register("deleted_logs", arrow_ids(gone.ids))
        yield connection
