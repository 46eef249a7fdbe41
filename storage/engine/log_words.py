"""The index of a segment's words: which logs hold which words, a Parquet file sorted by word.

Columns: `word` (folded as `storage.domain.words.fold` does, cut after `MOST_CHARS`), `ids` (of the logs whose
input or output text holds it, in order). Deleted logs stay in it until the segment is rewritten.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.domain.words import fold
from storage.engine.data_root import DataRoot
from storage.engine.filter_sql import INPUT_TEXT, OUTPUT_TEXT
from storage.engine.log_sql import duck, quoted

if TYPE_CHECKING:
    import polars as pl

MOST_CHARS = 40
_BATCH_ROWS = 8_192
_ROW_GROUP_WORDS = 256
_LAST_CHAR = chr(0x10FFFF)
_WORDS = r"[\p{L}\p{N}]+"


def write_words(data: DataRoot, segment_key: str, key: str) -> int:
    """Write the index of a segment under a key; return its bytes.

    Raises:
        Unavailable: the disk is full.
    """
    import polars as pl  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    parts = [_postings(batch) for batch in _texts(data.path(segment_key))]
    merged = (
        pl.concat(parts)
        .explode("ids")
        .group_by("word")
        .agg(pl.col("ids").unique().sort())
        .sort("word")
        .to_arrow()
    )
    with data.writing(key) as path:
        pq.write_table(
            merged,
            path,
            compression="zstd",
            row_group_size=_ROW_GROUP_WORDS,
            use_dictionary=False,
            column_encoding={"word": "DELTA_BYTE_ARRAY", "ids.list.element": "DELTA_BINARY_PACKED"},
        )
        return path.stat().st_size


def _texts(path: Path) -> Any:
    import polars as pl  # noqa: PLC0415

    query = f"SELECT id, {INPUT_TEXT} || ' ' || {OUTPUT_TEXT} AS text FROM read_parquet({quoted(str(path))})"  # noqa: S608
    with duck(threads=1) as connection:
        for batch in connection.sql(query).to_arrow_reader(_BATCH_ROWS):
            yield pl.from_arrow(batch)


def _postings(logs: "pl.DataFrame") -> "pl.DataFrame":
    """Words with the ids of the logs that hold them, of some logs."""
    import polars as pl  # noqa: PLC0415

    spelled = (
        logs.lazy()
        .select("id", pl.col("text").str.extract_all(_WORDS).list.unique().alias("spelled"))
        .explode("spelled")
        .drop_nulls()
        .group_by("spelled")
        .agg(pl.col("id").alias("ids"))
        .collect()
    )
    # folded once a spelling, not once a text
    words = pl.Series("word", [fold(word)[:MOST_CHARS] for word in spelled["spelled"]], pl.String)
    return spelled.select(words, "ids")


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
