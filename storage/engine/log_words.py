"""The index of a segment's words: which logs hold which words, a Parquet file sorted by word.

Columns: `word` (folded as `storage.domain.words.fold` does, cut after `MOST_CHARS`), `ids` (of the logs whose
input or output text holds it, in order). Deleted logs stay in it until the segment is rewritten.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from storage.domain.words import words_of
from storage.engine.data_root import DataRoot
from storage.engine.filter_sql import INPUT_TEXT, OUTPUT_TEXT
from storage.engine.log_sql import duck, quoted

if TYPE_CHECKING:
    import polars as pl

MOST_CHARS = 40
# Logs may have megabytes: few are fetched at once, and gathered up to a size.
_FETCHED_ROWS = 128
_BATCH_ROWS, _BATCH_BYTES = 8_192, 32 * 1_048_576
_ROW_GROUP_WORDS = 256
# So many ids are put together at once.
_MOST_POSTINGS = 2_000_000
_LAST_CHAR = chr(0x10FFFF)
_WORDS = r"[\p{L}\p{N}]+"


def write_words(data: DataRoot, segment_key: str, key: str) -> int:
    """Write the index of a segment under a key; return its bytes.

    Memory: four bytes a word of a log, and some 200 MB.

    Raises:
        Unavailable: the disk is full.
    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    parts = [_postings(batch) for batch in _texts(data.path(segment_key))]
    schema = pa.schema([("word", pa.large_string()), ("ids", pa.large_list(pa.int64()))])
    with data.writing(key) as path:
        with pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=False,
            column_encoding={"word": "DELTA_BYTE_ARRAY", "ids.list.element": "DELTA_BINARY_PACKED"},
        ) as writer:
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
    with duck(threads=1) as connection:
        gathered: list[pl.DataFrame] = []
        for batch in connection.sql(query).to_arrow_reader(_FETCHED_ROWS):
            gathered.append(cast("pl.DataFrame", pl.from_arrow(batch)))
            size = sum(int(one.estimated_size()) for one in gathered)
            if len(gathered) * _FETCHED_ROWS >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield pl.concat(gathered)
                gathered = []
        if gathered:
            yield pl.concat(gathered)


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
