"""Search of request logs: how many match, which in an order, what is shown of them, all at one moment.

Files never change, so how many logs of one match is asked once; a page then reads only the files that it
comes from. Narrow columns of a page are read by id, after its ids are known.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from storage.domain.log_deletions import NOTHING_GONE
from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot
from storage.engine.filter_sql import EVERY_LOG, SCORES_NOW, Condition
from storage.engine.log_lake import LogLake
from storage.engine.log_parts import NARROW, TAIL, LogParts
from storage.engine.log_reader import read_moment
from storage.engine.log_sql import arrow_ids, present, scores_of
from storage.engine.rows.log_segments import SCORES, Segment, select_changed_scores, select_segments

if TYPE_CHECKING:
    import duckdb

SORTS = {
    "request_start_time": "request_start_time",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cost": "price",
    "latency_ms": "latency_ms",
    "status": "status",
}
_MANY = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for: a condition, which relations it needs, and up to which id logs count."""

    condition: Condition
    facets: bool = False
    scores: bool = False
    through: int | None = None

    @property
    def fingerprint(self) -> str:
        said = f"{self.condition.sql}\n{self.condition.parameters!r}"
        return blake2b(said.encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Sort:
    """An order by one of `SORTS`; None: by id. Among equals the newest come first."""

    by: str | None = None
    descending: bool = True

    @property
    def sql(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"id {direction}" if self.by is None else f"{SORTS[self.by]} {direction}, id DESC"


class LogSearch:
    """One search over one moment; see `open_search`."""

    def __init__(
        self, connection: "duckdb.DuckDBPyConnection", lake: LogLake, parts: LogParts, asked: Asked
    ) -> None:
        self._connection = connection
        self._lake = lake
        self._parts = parts
        self._asked = asked
        through, gone = asked.through, parts.moment.gone
        self._files = [
            one
            for one in parts.moment.segments
            if one.last_id > gone.through and (through is None or one.first_id <= through)
        ]
        self._condition = Condition(present(gone) if gone != NOTHING_GONE else "true").also(
            asked.condition, EVERY_LOG if through is None else Condition("id <= ?", [through])
        )
        self._file_counts: dict[Segment, int] | None = None
        self._tail_count = 0

    @property
    def last_id(self) -> int:
        """The newest log that the search knows of, whether it matches or not; 0 when there is none."""
        tail, files = self._parts.moment.tail, self._parts.moment.segments
        return tail[-1].id if tail else max((one.last_id for one in files), default=0)

    def count(self) -> int:
        """How many logs match."""
        return sum(self._counts().values()) + self._tail_count

    def find_ids(self, sort: Sort, *, offset: int, limit: int) -> list[int]:
        """The ids of the matching logs from a place in the order on."""
        counts = self._counts()
        if offset >= sum(counts.values()) + self._tail_count or limit < 1:
            return []
        if sort.by is not None:
            files, tail = [one for one in self._files if counts[one]], True
        else:
            files, tail, offset = self._in_order(sort, offset, limit)
        query = (
            f"SELECT id FROM ({self._parts.over(files, tail=tail)}) WHERE {self._condition.sql} "  # noqa: S608
            f"ORDER BY {sort.sql} LIMIT {limit:d} OFFSET {offset:d}"
        )
        return [row[0] for row in self._fetch(query, self._condition.parameters)]

    def _in_order(self, sort: Sort, offset: int, limit: int) -> tuple[list[Segment], bool, int]:
        """The parts that hold a page in the order of ids, and the page's offset in them."""
        counts = self._counts()
        parts: list[tuple[Segment | None, int]] = [(one, counts[one]) for one in self._files]
        parts.append((None, self._tail_count))
        chosen: list[Segment | None] = []
        held = 0
        for part, count in reversed(parts) if sort.descending else parts:
            if not chosen and offset >= count:
                offset -= count
                continue
            if count:
                chosen.append(part)
                held += count
            if held >= offset + limit:
                break
        return [one for one in chosen if one is not None], None in chosen, offset

    def _counts(self) -> dict[Segment, int]:
        if self._file_counts is None:
            self._tail_count = self._count_tail()
            self._file_counts = self._count_files()
        return self._file_counts

    def _count_tail(self) -> int:
        query = f"SELECT count(*) FROM ({self._parts.of_tail()}) WHERE {self._condition.sql}"  # noqa: S608
        return int(self._fetch(query, self._condition.parameters)[0][0])

    def _count_files(self) -> dict[Segment, int]:
        counts = {one: known for one in self._files if (known := self._known_count(one)) is not None}
        left = [one for one in self._files if one not in counts]
        found = self._counted(left) if left else {}
        for one in left:
            count = counts[one] = found.get(self._parts.path(one), 0)
            if self._is_whole(one):
                self._lake.counts.get((one.id, self._asked.fingerprint), partial(int, count))
        return counts

    def _known_count(self, one: Segment) -> int | None:
        if not self._is_whole(one):
            return None
        if self._asked.condition == EVERY_LOG:
            return one.rows
        return self._lake.counts.find((one.id, self._asked.fingerprint))

    def _is_whole(self, one: Segment) -> bool:
        """Say whether what a file holds alone decides how many of its logs match."""
        through, moment = self._asked.through, self._parts.moment
        return (
            not self._asked.scores
            and (through is None or one.last_id <= through)
            and not moment.patches.touch(one.first_id, one.last_id)
            and not moment.gone.touches(one.first_id, one.last_id)
        )

    def _counted(self, files: Sequence[Segment]) -> dict[str, int]:
        query = (
            f"SELECT file_, count(*) FROM ({self._parts.of_files(files)}) "  # noqa: S608
            f"WHERE {self._condition.sql} GROUP BY file_"
        )
        return dict(self._fetch(query, self._condition.parameters))

    def read_narrow(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """What a list shows of some logs, in the order of the ids; those that are gone are left out."""
        if not ids:
            return []
        files = [one for one in self._files if any(one.first_id <= log_id <= one.last_id for log_id in ids)]
        tail = any(log_id >= self._first_of_tail for log_id in ids)
        names = ", ".join(NARROW)
        marks = ", ".join("?" * len(ids))
        select = self._parts.over(files, tail=tail)
        query = f"SELECT {names} FROM ({select}) WHERE id IN ({marks})"  # noqa: S608
        rows = self._fetch(query, list(ids))
        found = {row[0]: dict(zip(NARROW, row, strict=True)) for row in rows}
        return [found[log_id] for log_id in ids if log_id in found]

    @property
    def _first_of_tail(self) -> int:
        tail = self._parts.moment.tail
        return tail[0].id if tail else _MANY * _MANY

    def everything(self) -> tuple[str, Condition]:
        """SELECT over all logs that may match, and the condition to hold them against."""
        counts = self._file_counts
        files = self._files if counts is None else [one for one in self._files if counts[one]]
        return self._parts.over(files, tail=True), self._condition

    def fetch(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Ask a question of `everything()`."""
        return self._fetch(query, parameters)

    def _fetch(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, list(parameters)).fetchall()


@contextmanager
def open_search(
    lake: LogLake, logs: Catalog, data: DataRoot, workspace_id: int, asked: Asked
) -> Iterator[LogSearch]:
    """Open a search over the logs of a workspace as they stand now.

    Raises:
        Unavailable: too many search at once, or the answer needs more memory and disk than there is.
    """
    with lake.cursor() as connection:
        moment = read_moment(logs, workspace_id)
        parts = LogParts(data, moment, facets=asked.facets)
        connection.register(TAIL, parts.tail_rows())
        connection.register("deleted_logs", arrow_ids(moment.gone.ids))
        if moment.patches.rows:
            connection.register(moment.patches.relation, moment.patches.arrow())
        if asked.scores:
            _show_scores(connection, logs, data, workspace_id)
        yield LogSearch(connection, lake, parts, asked)


def _show_scores(
    connection: "duckdb.DuckDBPyConnection", logs: Catalog, data: DataRoot, workspace_id: int
) -> None:
    """Let queries read the scores of a workspace as they stand now."""
    from storage.engine.log_segments import arrow_scores  # noqa: PLC0415

    with logs.read() as reading:
        files = select_segments(reading, workspace_id=workspace_id, kind=SCORES)
        changed = [one for one in select_changed_scores(reading, _MANY) if one.workspace_id == workspace_id]
    connection.register("changed_scores_", arrow_scores(changed))
    paths = [str(data.path(one.key)) for one in files]
    connection.execute(f"CREATE TEMP VIEW {SCORES_NOW} AS {scores_of(paths, 'changed_scores_')}")
