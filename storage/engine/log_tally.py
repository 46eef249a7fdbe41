"""What the dictionaries of many files say together: summed once a process, then carried on file by file.

Files never change, so what was summed stays true as long as each of its files still counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from storage.engine.log_sql import quoted
from storage.engine.lru import Lru

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MOST_VALUES = 250_000
"""Of a key with more values only the newest files are summed: how often each stands there says little."""
_KEPT_BYTES = 50_331_648
_RELATION = "tally_"

Place: TypeAlias = tuple[int, str, str | None]
"""A workspace, a field and a key of it; None: of all keys."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many logs have each value (columns `value`, `count`), by some dictionaries.

    `whole`: by all that were asked for; else by the newest of them.
    """

    files: frozenset[str]
    values: "pa.Table"
    whole: bool


class Tallies:
    """What was summed last, as far as there is room."""

    def __init__(self, *, most_values: int = MOST_VALUES) -> None:
        self._most = most_values
        self._kept: Lru[Place, Tally] = Lru(_KEPT_BYTES, lambda tally: int(tally.values.nbytes) + 1024)

    def of(self, connection: "duckdb.DuckDBPyConnection", place: Place, paths: Sequence[str]) -> Tally:
        """Sum up dictionaries, given oldest first."""
        asked, kept = frozenset(paths), self._kept.find(place)
        if kept is not None and kept.files == asked:
            return self._kept.get(place, lambda: kept)
        base = kept if kept is not None and kept.whole and kept.files <= asked else None
        tally = None
        if kept is None or kept.whole:
            tally = self._whole(connection, place, asked, base)
        if tally is None:
            tally = self._newest(connection, place, paths)
        self._kept.put(place, tally)
        return tally

    def _whole(
        self, connection: "duckdb.DuckDBPyConnection", place: Place, asked: frozenset[str], base: Tally | None
    ) -> Tally | None:
        """Sum up all of them, on top of what is known; None: there are too many values."""
        fresh = asked if base is None else asked - base.files
        selects, parameters = [_rows(sorted(fresh), place)], _parameters(place)
        if base is not None:
            connection.register(_RELATION, base.values)
            selects.append(f"SELECT value, count FROM {_RELATION}")  # noqa: S608
        query = (
            "SELECT value, CAST(sum(count) AS BIGINT) AS count "  # noqa: S608
            f"FROM ({' UNION ALL '.join(selects)}) GROUP BY value LIMIT {self._most + 1:d}"
        )
        values = connection.sql(query, params=parameters).to_arrow_table()
        return None if len(values) > self._most else Tally(asked, values, whole=True)

    def _newest(self, connection: "duckdb.DuckDBPyConnection", place: Place, paths: Sequence[str]) -> Tally:
        """Sum up the newest, as many as hold the most values that are summed; at least one."""
        chosen: list[str] = []
        held = 0
        for path in reversed(paths):
            query = f"SELECT count(*) FROM ({_rows([path], place)})"  # noqa: S608
            held += int(connection.execute(query, _parameters(place)).fetchall()[0][0])
            if chosen and held > self._most:
                break
            chosen.append(path)
        query = (
            f"SELECT value, CAST(sum(count) AS BIGINT) AS count FROM ({_rows(chosen, place)}) "  # noqa: S608
            f"GROUP BY value ORDER BY count DESC, value LIMIT {self._most:d}"
        )
        values = connection.sql(query, params=_parameters(place)).to_arrow_table()
        return Tally(frozenset(paths), values, whole=held <= self._most)


def _rows(paths: Sequence[str], place: Place) -> str:
    return rows_of(paths, keyed=place[2] is not None)


def _parameters(place: Place) -> list[str]:
    _, field, key = place
    return [field] if key is None else [field, key]


def rows_of(paths: Sequence[str], *, keyed: bool) -> str:
    """SELECT of `value` and `count` of a field (a parameter), and if `keyed` of a key (another one)."""
    files = ", ".join(quoted(path) for path in paths)
    of_key = " AND key = ?" if keyed else ""
    return f"SELECT value, count FROM read_parquet([{files}]) WHERE field = ?{of_key} AND value <> ''"  # noqa: S608
