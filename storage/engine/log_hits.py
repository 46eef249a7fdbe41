"""Which logs hold the words of a search, as the indexes beside the files tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot, file_sha256
from storage.engine.filter_sql import Condition
from storage.engine.log_signs import signs_query
from storage.engine.log_words import words_query
from storage.engine.rows.log_companions import SIGNS, VALUES, WORDS, Companion, select_companions
from storage.engine.rows.log_segments import Segment

if TYPE_CHECKING:
    import duckdb

_SURE, _MAYBE = "log_word_hits_", "log_word_maybe_"


@dataclass(frozen=True, slots=True)
class Companions:
    """Paths of indexes of words, dictionaries of values, and signs, by the segment that they speak of."""

    words: Mapping[UUID, str]
    values: Mapping[UUID, str]
    signs: Mapping[UUID, str]


def read_companions(logs: Catalog, data: DataRoot, workspace_id: int) -> Companions:
    """What is there; files of which something is missing or cut off are as if they had nothing."""
    with logs.read() as connection:
        named = select_companions(connection, workspace_id)
    broken = broken_companions(data, named)
    found = [one for one in named if one.segment_id not in broken] if broken else named

    def paths(kind: str) -> dict[UUID, str]:
        return {one.segment_id: str(data.path(one.key)) for one in found if one.kind == kind}

    return Companions(paths(WORDS), paths(VALUES), paths(SIGNS))


def broken_companions(data: DataRoot, named: Sequence[Companion]) -> set[UUID]:
    """The segments of which a companion is missing or has another size than when it was made."""
    return {one.segment_id for one in named if _size(data, one.key) != one.bytes}


def is_as_made(data: DataRoot, companion: Companion) -> bool:
    """Compare a companion's bytes with its checksum, or read its footer where none was kept."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = data.path(companion.key)
    try:
        if companion.sha256 is None:
            pq.read_metadata(path)
        return companion.sha256 in {None, file_sha256(path)}
    except (OSError, pa.ArrowException):
        return False


def _size(data: DataRoot, key: str) -> int | None:
    try:
        return data.path(key).stat().st_size
    except FileNotFoundError:
        return None


class WordHits:
    """Asks the indexes of some files at the first question, and keeps what they say for the others."""

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        companions: Companions,
        files: Sequence[Segment],
        words: Sequence[str],
    ) -> None:
        self._connection = connection
        self._companions = companions
        self._files = files
        self._words = words
        self._asked = False
        self._maybe: list[tuple[Segment, tuple[int, ...]]] = []

    def sure(self) -> Condition:
        """Holds for the logs that are indexed under each word; long words are cut there."""
        self._ask()
        return Condition(f"id IN (SELECT id FROM {_SURE})")  # noqa: S608

    def maybe(self, files: Sequence[Segment]) -> dict[Segment, tuple[int, ...]]:
        """Of some files the logs with very many words that may hold these: their texts must be looked at."""
        self._ask()
        among = set(files)
        return {one: ids for one, ids in self._maybe if one in among}

    def _ask(self) -> None:
        if self._asked:
            return
        self._asked = True
        indexed = [one for one in self._files if one.id in self._companions.words]
        query, words = words_query([self._companions.words[one.id] for one in indexed], self._words)
        self._connection.execute(f"CREATE TEMP TABLE {_SURE} AS {query}", words)
        signed = [one for one in indexed if one.id in self._companions.signs]
        if signed:
            query, signs = signs_query([self._companions.signs[one.id] for one in signed], self._words)
            ids = sorted(row[0] for row in self._connection.execute(query, signs).fetchall())
            within = ((one, tuple(i for i in ids if one.first_id <= i <= one.last_id)) for one in signed)
            self._maybe = [(one, some) for one, some in within if some]
