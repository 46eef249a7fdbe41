"""Relations over the logs of one moment: files and tail, with patches and, if asked for, facts of answers."""

from collections.abc import Sequence

from storage.domain.log_columns import LOG_COLUMNS
from storage.engine.data_root import DataRoot
from storage.engine.facet_sql import FACET_COLUMNS, FACET_NAMES, with_facets
from storage.engine.filter_sql import EVERY_LOG, INPUT_TEXT, OUTPUT_TEXT, Condition
from storage.engine.log_reader import LogMoment
from storage.engine.log_sql import LOG_NAMES, quoted
from storage.engine.log_tails import Tail
from storage.engine.lru import Lru
from storage.engine.rows.log_segments import Segment

TAIL = "log_tail_"
_MOST_TEXTS = 6
_LARGE_BYTES = 8_192
"""So many bytes a log in a file make its logs large: some 40 KB as they were sent."""
_HAS_FACETS: Lru[str, bool] = Lru(100_000)


class LogParts:
    """SELECTs of the promised columns; with `facets` also those of answers.

    The columns of `tail`, which stands for that of the moment, are to be registered as `TAIL`.
    """

    def __init__(self, data: DataRoot, moment: LogMoment, tail: Tail, *, facets: bool) -> None:
        self._data = data
        self.moment = moment
        self.tail = tail
        self._facets = facets

    def of_files(self, files: Sequence[Segment]) -> str:
        """SELECT over some files, with `file_`, the path that each comes from."""
        if not self._facets:
            return self._patched(self._read(files, LOG_NAMES), files)
        having = [one for one in files if self._has_facets(one)]
        lacking = [one for one in files if one not in having]
        selects = []
        if having:
            selects.append(self._patched(self._read(having, f"{LOG_NAMES}, {FACET_NAMES}"), having))
        if lacking:
            selects.append(self._patched(with_facets(self._read(lacking, LOG_NAMES)), lacking))
        return " UNION ALL BY NAME ".join(selects)

    def of_tail(self) -> str:
        """SELECT over the tail."""
        select = f"SELECT *, CAST(NULL AS VARCHAR) AS file_ FROM {TAIL}"  # noqa: S608
        if self._facets:
            select = with_facets(select)
        if self.tail.first_id is None or self.tail.last_id is None:
            return select
        return self.moment.patches.over(select, first_id=self.tail.first_id, last_id=self.tail.last_id)

    def over(self, files: Sequence[Segment], *, tail: bool) -> str:
        """SELECT over some files and, if said so, the tail."""
        selects = [self.of_files(files)] if files else []
        if tail or not selects:
            selects.append(self.of_tail())
        return " UNION ALL BY NAME ".join(selects)

    def path(self, segment: Segment) -> str:
        return str(self._data.path(segment.key))

    def _read(self, files: Sequence[Segment], names: str) -> str:
        paths = ", ".join(quoted(self.path(one)) for one in files)
        return f"SELECT {names}, filename AS file_ FROM read_parquet([{paths}])"  # noqa: S608

    def _patched(self, select: str, files: Sequence[Segment]) -> str:
        first_id, last_id = min(one.first_id for one in files), max(one.last_id for one in files)
        return self.moment.patches.over(select, first_id=first_id, last_id=last_id)

    def _has_facets(self, segment: Segment) -> bool:
        def look() -> bool:
            import pyarrow.parquet as pq  # noqa: PLC0415

            return set(FACET_COLUMNS) <= set(pq.read_schema(self.path(segment)).names)

        return _HAS_FACETS.get(segment.key, look)


def has_large_logs(segment: Segment) -> bool:
    return segment.bytes >= _LARGE_BYTES * segment.rows


def tested(select: str, condition: Condition) -> str:
    """SELECT of the rows of another that meet a condition on texts which may be large.

    DuckDB's filters gather up to 2,048 rows with all that they have looked at, megabytes each. So the test is
    a column, kept apart from the filter on it by what DuckDB must not evaluate elsewhere.
    """
    select, condition = tell_texts(select, condition)
    test = f"CASE WHEN random() >= 0 AND ({condition.sql}) THEN true ELSE false END AS holds_"
    return f"SELECT * EXCLUDE (holds_) FROM (SELECT *, {test} FROM ({select})) WHERE holds_"  # noqa: S608


def tell_texts(select: str, condition: Condition) -> tuple[str, Condition]:
    """Have the texts of a log made once where a condition tests them often, not once a test.

    Each test would hold its own for 2,048 logs. What is returned has columns `input_text_`, `output_text_`.
    """
    if condition.sql.count(INPUT_TEXT) + condition.sql.count(OUTPUT_TEXT) <= _MOST_TEXTS:
        return select, condition
    sql = condition.sql.replace(INPUT_TEXT, "input_text_").replace(OUTPUT_TEXT, "output_text_")
    texts = ((INPUT_TEXT, "input_text_"), (OUTPUT_TEXT, "output_text_"))
    columns = ", ".join(f"CASE WHEN random() >= 0 THEN {text} END AS {name}" for text, name in texts)
    return f"SELECT *, {columns} FROM ({select})", Condition(sql, condition.parameters)  # noqa: S608


def cut(select: str, among: Sequence[int] | None) -> str:
    """Keep the rows of a SELECT between some ids: what stands beside them in a file need not be read."""
    if among is None:
        return select
    return f"SELECT * FROM ({select}) WHERE id BETWEEN {min(among):d} AND {max(among):d}"  # noqa: S608


def are_among(ids: Sequence[int] | None) -> Condition:
    """Test for ids (None: any) by a function that is made no join of: joins gather rows as filters do."""
    return EVERY_LOG if ids is None else Condition("list_position(?, id) > 0", [list(ids)])


def are_not_among(ids: Sequence[int]) -> Condition:
    """The opposite, by such a function too."""
    return Condition("coalesce(list_position(?, id), 0) = 0", [list(ids)]) if ids else EVERY_LOG


NARROW = tuple(
    column.name
    for column in LOG_COLUMNS
    if column.name not in {"parameters", "prompt_input_variables", "input", "output"}
)
"""Columns that a list of logs shows; the others come by id."""
WIDE = ("input", "output", "parameters", "input_text_", "output_text_")
"""Columns that may hold megabytes, and that nobody asks for once they were tested."""
