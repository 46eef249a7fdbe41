"""Search of request logs: how many match, which in an order, what is shown of them, all at one moment.

Files never change, so how many logs of one match is asked once; a page then reads only the files that it
comes from, and their narrow columns by id. Dictionaries of values tell which files need not be read at all,
indexes of words which logs hold a word; files that have neither yet are read.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count as count_up
from typing import TYPE_CHECKING, Any
from uuid import UUID

from storage.domain.log_deletions import Gone
from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot
from storage.engine.filter_sql import EVERY_LOG, SCORES_NOW, Condition, words_condition
from storage.engine.log_asked import Asked, Sort
from storage.engine.log_damage import damage_told
from storage.engine.log_hints import hinted, hints_of
from storage.engine.log_hits import Companions, WordHits, read_companions
from storage.engine.log_lake import LIMIT_S, LogLake
from storage.engine.log_parts import (
    NARROW,
    TAIL,
    WIDE,
    LogParts,
    are_among,
    are_not_among,
    cut,
    has_large_logs,
    tell_texts,
    tested,
)
from storage.engine.log_sql import arrow_ids, present, scores_of
from storage.engine.log_tally import Tally
from storage.engine.log_words import is_exact
from storage.engine.rows.log_segments import SCORES, Segment, select_changed_scores, select_segments

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_MANY = 2**31 - 1
_MOST_APART = 16


class LogSearch:
    """One search over one moment; see `open_search`."""

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        lake: LogLake,
        parts: LogParts,
        companions: Companions,
        asked: Asked,
    ) -> None:
        self._connection = connection
        self._lake = lake
        self._parts = parts
        self._companions = companions
        self._asked = asked
        through, gone = asked.through, parts.moment.gone
        self._files = [
            one
            for one in parts.moment.segments
            if one.last_id > gone.through and (through is None or one.first_id <= through)
        ]
        self._there = Condition(present(replace(gone, through=0)))
        self._condition = asked.condition.also(
            Condition(present(Gone(gone.through))),
            EVERY_LOG if through is None else Condition("id <= ?", [through]),
        )
        self._file_counts: dict[Segment, int] | None = None
        self._tail_count = 0
        self._hits = WordHits(connection, companions, self._files, asked.words)
        # of some files, the only logs that may match
        self._few: dict[Segment, tuple[int, ...]] = {}
        self._gatherings = count_up()

    @property
    def last_id(self) -> int:
        """The newest log that the search knows of, whether it matches or not; 0 when there is none."""
        tail, files = self._parts.tail, self._parts.moment.segments
        return tail.last_id or max((one.last_id for one in files), default=0)

    def count(self) -> int:
        """How many logs match."""
        return sum(self._counts().values()) + self._tail_count

    def find_ids(self, sort: Sort, *, offset: int, limit: int) -> list[int]:
        """The ids of the matching logs from a place in the order on."""
        counts = self._counts()
        if offset >= sum(counts.values()) + self._tail_count or limit < 1:
            return []
        if sort.by is not None:
            files, tail = [one for one in self._files if counts[one]], bool(self._tail_count)
        else:
            files, tail, offset = self._in_order(sort, offset, limit)
        matching, parameters = self.matching(files, tail=tail)
        query = f"SELECT id FROM ({matching}) ORDER BY {sort.sql} LIMIT {limit:d} OFFSET {offset:d}"  # noqa: S608
        return [row[0] for row in self.fetch(query, parameters)]

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

    def matching(self, files: Sequence[Segment] | None = None, *, tail: bool = True) -> tuple[str, list[Any]]:
        """SELECT of the logs that match, of some files (None: all) and the tail, and its parameters."""
        if files is None:
            counts = self._file_counts
            files = self._files if counts is None else [one for one in self._files if counts[one]]
        words = self._asked.words
        few = [one for one in files if one in self._few]
        indexed = [one for one in files if words and one not in few and one.id in self._companions.words]
        others = [one for one in files if one not in few and one not in indexed]
        read = self._condition.also(words_condition(words))
        selects = []
        if others or tail or not (few or indexed):
            selects += self._reading(others, read, tail=tail)
        looked_at = {one: self._few[one] for one in few}
        if indexed:
            checked = self._condition if is_exact(words) else read
            selects.append(self._where(self._parts.of_files(indexed), self._hits.sure().also(checked)))
            looked_at |= self._hits.maybe(indexed)
        for some in [[one] for one in looked_at] if len(looked_at) <= _MOST_APART else [list(looked_at)]:
            ids = [log_id for one in some for log_id in looked_at[one]]
            selects += self._reading(some, read, tail=False, among=ids)
        sql = " UNION ALL BY NAME ".join(select for select, _ in selects)
        return sql, [value for _, parameters in selects for value in parameters]

    def _reading(
        self,
        files: Sequence[Segment],
        condition: Condition,
        *,
        tail: bool,
        among: Sequence[int] | None = None,
    ) -> list[tuple[str, list[Any]]]:
        """SELECTs of what meets a condition that may be on texts, of all logs or those `among` some ids."""
        large = [one for one in files if has_large_logs(one)] if self._asked.reads_texts else []
        normal = [one for one in files if one not in large]
        tail_apart = tail and self._asked.reads_texts and self._parts.tail.is_large
        tail = tail and not tail_apart
        selects = []
        if large or tail_apart:
            select = cut(self._parts.over(large, tail=tail_apart), among)
            here = are_among(among).also(are_not_among(self._parts.moment.gone.ids), condition)
            selects.append(self._gathered(tested(select, here), here.parameters))
        if normal or tail or not selects:
            named = EVERY_LOG if among is None else Condition("id IN (SELECT unnest(?))", [list(among)])
            selects.append(self._where(self._parts.over(normal, tail=tail), named.also(condition)))
        return selects

    def _gathered(self, select: str, parameters: Sequence[Any]) -> tuple[str, list[Any]]:
        """Look at large logs now, and keep what is narrow: parts looked at together hold megabytes each."""
        name = f"large_matches_{next(self._gatherings)}_"
        narrow = f"SELECT COLUMNS(lambda c: NOT list_contains({list(WIDE)}, c)) FROM ({select})"  # noqa: S608
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {narrow}", list(parameters))
        return f"SELECT * FROM {name}", []  # noqa: S608

    def _where(self, select: str, condition: Condition) -> tuple[str, list[Any]]:
        select, both = tell_texts(select, self._there.also(condition))
        return f"SELECT * FROM ({select}) WHERE {both.sql}", list(both.parameters)  # noqa: S608

    def _counts(self) -> dict[Segment, int]:
        if self._file_counts is None:
            self._tail_count = self._count_tail()
            self._file_counts = self._count_files()
        return self._file_counts

    def _count_tail(self) -> int:
        if self._parts.tail.last_id is None:
            return 0
        matching, parameters = self.matching([], tail=True)
        return int(self.fetch(f"SELECT count(*) FROM ({matching})", parameters)[0][0])  # noqa: S608

    def _count_files(self) -> dict[Segment, int]:
        counts = self._hinted(self._files)
        counts |= {one: known for one in self._files if (known := self._known_count(one)) is not None}
        left = [one for one in self._files if one not in counts]
        found = self._counted(left) if left else {}
        for one in left:
            counts[one] = found.get(self._parts.path(one), 0)
        for one, count in counts.items():
            if self._is_whole(one):
                self._lake.counts.get(self._count_key(one), partial(int, count))
        return counts

    def _count_key(self, one: Segment) -> tuple[UUID, str, int]:
        """Where the count of a file is remembered: also by what told it, which may have been damaged."""
        told = self._companions.values.get(one.id), self._companions.words.get(one.id)
        return one.id, self._asked.fingerprint, hash(told)

    def _known_count(self, one: Segment) -> int | None:
        if not self._is_whole(one):
            return None
        return one.rows if self._asked.is_everything else self._lake.counts.find(self._count_key(one))

    def _hinted(self, files: Sequence[Segment]) -> dict[Segment, int]:
        """What dictionaries say of some files: none of their logs match, or exactly how many.

        Where only a few of a file's logs may match, it is noted which.
        """
        hints = hints_of(self._asked.group)
        patches, values = self._parts.moment.patches, self._companions.values
        known = {
            values[one.id]: one
            for one in files
            if one.id in values and not patches.touch(one.first_id, one.last_id)
        }
        if not hints or not known:
            return {}
        told = hinted(self._connection, hints, known, self._lake.told)
        decides = not self._asked.words and self._asked.also == EVERY_LOG
        counts: dict[Segment, int] = {}
        for path, one in known.items():
            count, ids = told[path].count, told[path].ids
            if ids:
                self._few[one] = ids
            if count is not None and (count == 0 or (decides and self._is_whole(one))):
                counts[one] = count
        return counts

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
        matching, parameters = self.matching(files, tail=False)
        return dict(self.fetch(f"SELECT file_, count(*) FROM ({matching}) GROUP BY file_", parameters))  # noqa: S608

    def dictionaries(self) -> tuple[list[str], list[Segment]]:
        """Paths of the dictionaries that say all of their files, and the files that they do not speak of."""
        said = [one for one in self._files if one.id in self._companions.values and self._is_whole(one)]
        of = {one.id for one in said}
        return [self._companions.values[one.id] for one in said], [
            one for one in self._files if one.id not in of
        ]

    def newest(self, most_logs: int) -> list[Segment]:
        """The newest files that may hold a match, as many as have so many logs together; at least one."""
        counts = self._hinted(self._files)
        chosen: list[Segment] = []
        held = 0
        for one in reversed(self._files):
            if counts.get(one) == 0:
                continue
            held += len(self._few.get(one, ())) or one.rows
            if chosen and held > most_logs:
                break
            chosen.append(one)
        return chosen[::-1]

    def tally(self, field: str, key: str | None, paths: Sequence[str]) -> Tally:
        """What some dictionaries say of a field and key (None: all keys) together."""
        workspace_id = self._files[0].workspace_id if self._files else 0
        return self._lake.tallies.of(self._connection, (workspace_id, field, key), paths)

    def show(self, name: str, rows: "pa.Table") -> None:
        """Let questions read a relation."""
        self._connection.register(name, rows)

    def read_narrow(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """What a list shows of some logs, in the order of the ids; those that are gone are left out."""
        if not ids:
            return []
        files = [one for one in self._files if any(one.first_id <= log_id <= one.last_id for log_id in ids)]
        first_id = self._parts.tail.first_id
        tail = first_id is not None and max(ids) >= first_id
        names = ", ".join(NARROW)
        marks = ", ".join("?" * len(ids))
        select = self._parts.over(files, tail=tail)
        query = f"SELECT {names} FROM ({select}) WHERE id IN ({marks})"  # noqa: S608
        rows = self.fetch(query, list(ids))
        found = {row[0]: dict(zip(NARROW, row, strict=True)) for row in rows}
        return [found[log_id] for log_id in ids if log_id in found]

    def fetch(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Ask a question of what `matching` gives."""
        return self._connection.execute(query, list(parameters)).fetchall()


@contextmanager
def open_search(
    lake: LogLake,
    logs: Catalog,
    data: DataRoot,
    workspace_id: int,
    asked: Asked,
    *,
    limit_s: float | None = LIMIT_S,
) -> Iterator[LogSearch]:
    """Open a search over the logs of a workspace as they stand now, which takes some seconds at most.

    Raises:
        Unavailable: too many search at once, it takes too long, or the answer needs more memory and disk
            than there is.
        DamagedFileError: a file is missing or damaged.
    """
    with damage_told(), lake.cursor(limit_s=limit_s) as connection:
        moment, tail = lake.tails.read_moment(connection, logs, workspace_id)
        parts = LogParts(data, moment, tail, facets=asked.facets)
        connection.register(TAIL, tail.columns)
        connection.register("deleted_logs", arrow_ids(moment.gone.ids))
        if moment.patches.rows:
            connection.register(moment.patches.relation, moment.patches.arrow())
        if asked.scores:
            _show_scores(connection, logs, data, workspace_id)
        yield LogSearch(connection, lake, parts, read_companions(logs, data, workspace_id), asked)


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
