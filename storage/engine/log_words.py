"""The index of a segment's words: which logs hold which words, a Parquet file sorted by word.

Columns: `word` (folded as `storage.domain.words.fold` does, cut after `MOST_CHARS`), `ids` (of the logs whose
input or output text holds it, in order). Deleted logs stay in it until the segment is rewritten. Of logs with
very many words there are signs (`log_signs`) in its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from storage.domain.words import words_of
from storage.engine.data_root import DataRoot
from storage.engine.filter_sql import INPUT_TEXT, OUTPUT_TEXT
from storage.engine.log_signs import index_file, signs_of
from storage.engine.log_sql import duck, quoted

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

MOST_CHARS = 40
# Logs may have megabytes: few are fetched at once, and gathered up to a size.
_FETCHED_ROWS, _FETCHED_BYTES = 128, 16 * 1_048_576
_BATCH_ROWS, _BATCH_BYTES = 8_192, 32 * 1_048_576
_ROW_GROUP_WORDS = 256
# So many ids are put together at once.
_MOST_POSTINGS = 2_000_000
# A log with more words has signs; so has one with few more, once a segment's words are as many as fit.
_MOST_WORDS, _MOST_OF_MANY = 8_192, 512
_MOST_OF_SEGMENT = 4_000_000
_BYTES_A_WORD = 4
_LAST_CHAR = chr(0x10FFFF)
_WORDS = r"[\p{L}\p{N}]+"


@dataclass(frozen=True, slots=True)
class Gathered:
    """The words of a segment's logs in parts, and the signs of those with very many."""

    parts: "Sequence[_Part]"
    signs: "Sequence[tuple[int, np.ndarray]]"


def gather_words(data: DataRoot, segment_key: str) -> Gathered:
    """Take the words of a segment's logs; memory: four bytes a word of a log, and some 200 MB."""
    parts: list[_Part] = []
    signs: list[tuple[int, np.ndarray]] = []
    held = 0
    for batch in _texts(data.path(segment_key)):
        most = _MOST_WORDS if held < _MOST_OF_SEGMENT else _MOST_OF_MANY
        crowded = _crowded(batch, most)
        signs += crowded
        left = batch.filter(~batch["id"].is_in([log_id for log_id, _ in crowded])) if crowded else batch
        if len(left):
            parts.append(_postings(left))
            held += len(parts[-1].postings)
    return Gathered(parts, signs)


def _crowded(logs: "pl.DataFrame", most: int) -> "list[tuple[int, np.ndarray]]":
    """Signs of the logs that have more than so many words."""
    long = logs.filter(logs["text"].str.len_bytes() > most * _BYTES_A_WORD)
    found = ((log_id, set(words_of(text))) for log_id, text in long.iter_rows())
    return [(log_id, signs_of(words)) for log_id, words in found if len(words) > most]


def write_words(data: DataRoot, key: str, parts: "Sequence[_Part]") -> int:
    """Write the index of what was gathered under a key; return its bytes.

    Raises:
        Unavailable: the disk is full.
    """
    import pyarrow as pa  # noqa: PLC0415

    schema = pa.schema([("word", pa.large_string()), ("ids", pa.large_list(pa.int64()))])
    encodings = {"word": "DELTA_BYTE_ARRAY", "ids.list.element": "DELTA_BINARY_PACKED"}
    with data.writing(key) as path:
        with index_file(path, schema, encodings) as writer:
            for words in _stretches(parts):
                table = _merged(parts, words).to_arrow().cast(schema)
                writer.write_table(table, row_group_size=_ROW_GROUP_WORDS)
        return path.stat().st_size


@dataclass(frozen=True)
class _Part:
    """Words of some logs, each once and in order, with how far behind `base` the ids of its logs are."""

    base: int
    postings: "pl.DataFrame"


def _stretches(parts: Sequence[_Part]) -> Iterator[tuple[str, str]]:
    """Cut all words into stretches of about _MOST_POSTINGS each; yield the first and last word of each."""
    import polars as pl  # noqa: PLC0415

    if not parts:
        return
    counted = (
        pl.concat(part.postings.select("word", pl.col("ids").list.len().alias("count")) for part in parts)
        .group_by("word")
        .agg(pl.col("count").cast(pl.Int64).sum())
        .sort("word")
        .with_columns((pl.col("count").cum_sum() // _MOST_POSTINGS).alias("stretch"))
    )
    ends = counted.group_by("stretch", maintain_order=True).agg(
        pl.col("word").first().alias("first"), pl.col("word").last().alias("last")
    )
    yield from ends.select("first", "last").iter_rows()


def _merged(parts: Sequence[_Part], words: tuple[str, str]) -> "pl.DataFrame":
    """The words of a stretch with the ids of all parts, which follow one another."""
    import polars as pl  # noqa: PLC0415

    first, last = words
    within = [
        part.postings.filter(pl.col("word").is_between(pl.lit(first), pl.lit(last))).with_columns(
            pl.col("ids").list.eval(pl.element().cast(pl.Int64) + part.base)
        )
        for part in parts
    ]
    return pl.concat(within).group_by("word").agg(pl.col("ids").explode()).sort("word")


def _texts(path: Path) -> "Iterator[pl.DataFrame]":
    """Yield ids and texts in the order of ids."""
    import polars as pl  # noqa: PLC0415

    query = f"SELECT id, {INPUT_TEXT} || ' ' || {OUTPUT_TEXT} AS text FROM read_parquet({quoted(str(path))})"  # noqa: S608
    rows = _fetched_rows(path)
    with duck(threads=1) as connection:
        gathered: list[pl.DataFrame] = []
        for batch in connection.sql(query).to_arrow_reader(rows):
            gathered.append(cast("pl.DataFrame", pl.from_arrow(batch)))
            size = sum(int(one.estimated_size()) for one in gathered)
            if len(gathered) * rows >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield pl.concat(gathered)
                gathered = []
        if gathered:
            yield pl.concat(gathered)


def _fetched_rows(path: Path) -> int:
    """How many logs of a file are fetched at once, by its largest."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    told = pq.read_metadata(path)
    groups = [told.row_group(number) for number in range(told.num_row_groups)]
    largest = max((one.total_byte_size // max(1, one.num_rows) for one in groups), default=0)
    return max(1, min(_FETCHED_ROWS, _FETCHED_BYTES // max(1, largest)))


def _postings(logs: "pl.DataFrame") -> _Part:
    """Words with the ids of the logs that hold them, of some logs in the order of their ids."""
    import polars as pl  # noqa: PLC0415

    base = int(cast("int", logs["id"].min()))
    spelled = (
        logs.lazy()
        .select(
            (pl.col("id") - base).cast(pl.UInt32).alias("ids"),
            pl.col("text").str.extract_all(_WORDS).list.unique().alias("spelled"),
        )
        .explode("spelled")
        .drop_nulls()
        .group_by("spelled")
        .agg("ids")
        .collect()
    )
    # Folded once a spelling, not once a text; and taken apart once more, as the tables of letters that this
    # interpreter has may be older than those that found the spellings.
    words = [[word[:MOST_CHARS] for word in words_of(one)] for one in spelled["spelled"]]
    postings = (
        spelled.select(pl.Series("word", words, pl.List(pl.String)), "ids")
        .explode("word")
        .drop_nulls("word")
        .group_by("word")
        .agg(pl.col("ids").explode().unique().sort())
        .sort("word")
    )
    return _Part(base, postings)


def words_query(paths: Sequence[str], words: Sequence[str]) -> tuple[str, list[str]]:
    """SELECT of the ids of logs that hold each word as the beginning of one, and its parameters.

    `paths` are those of indexes. A word longer than `MOST_CHARS` is compared up to there.
    """
    files = ", ".join(quoted(path) for path in paths)
    one = f"SELECT DISTINCT unnest(ids) AS id FROM read_parquet([{files}]) WHERE word >= ? AND word < ?"  # noqa: S608
    cut = [word[:MOST_CHARS] for word in words]
    bounds = [bound for word in cut for bound in (word, word + _LAST_CHAR)]
    return " INTERSECT ".join([one] * len(words)), bounds


def is_exact(words: Sequence[str]) -> bool:
    """Say whether the index alone decides; else the logs it finds must be looked at."""
    return all(len(word) < MOST_CHARS for word in words)
