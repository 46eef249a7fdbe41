"""Input hashes: what a cell was computed from, in 128 bits, over all rows of a block at once."""

import json
from collections.abc import Sequence
from hashlib import sha256

import polars as pl
from xxhash import xxh3_128_hexdigest

from pipelines.columns.values import shown
from storage.domain.columns import Column
from storage.domain.results import Values

# what says how a computation is kept, not what it is
_BESIDE = frozenset({"cache"})
# what is spelled of so many rows is hashed before the next: of all at once it would be twice what is read
_STEP_ROWS = 16_384


def config_digest(column: Column, engine: str, pinned: str = "") -> str:
    """Return what a column computes, by which engine and which version of what it names, in hexadecimal.

    Its title does not count.
    """
    config = {name: value for name, value in column.config.items() if name not in _BESIDE}
    edges = [[edge["column_id"], edge["config_key"], edge["config_meta"]] for edge in column.dependencies]
    spelled = json.dumps(
        [column.type, config, edges, engine, *filter(None, [pinned])], sort_keys=True, ensure_ascii=False
    )
    return sha256(spelled.encode()).hexdigest()


def hash_rows(digest: str, columns: Sequence[Values], count: int) -> pl.Series:
    """Return the hash of each row: xxh3_128 over the digest and the length-prefixed values, in hexadecimal.

    The encoding that a value happens to be kept in does not count, its type does. Of no columns all rows have
    one hash.
    """
    if not columns:
        # an expression of literals alone is one row, however many its frame has
        hashed = pl.Series("hash", [xxh3_128_hexdigest(digest.encode())], dtype=pl.String)
        return hashed.new_from_index(0, count)
    steps = [
        _hash_step(digest, [Values(one.encoding, one.series.slice(at, _STEP_ROWS)) for one in columns])
        for at in range(0, max(1, count), _STEP_ROWS)
    ]
    return pl.concat(steps)


def _hash_step(digest: str, columns: Sequence[Values]) -> pl.Series:
    pieces: list[pl.Expr] = [pl.lit(digest)]
    columns_at: list[pl.Series] = []
    for at, values in enumerate(columns):
        spelled = _spelled(values).alias(str(at))
        columns_at.append(spelled)
        present = [_tag(values, str(at)), pl.col(str(at)).str.len_bytes(), pl.lit(":"), pl.col(str(at))]
        if not spelled.null_count():
            # one concatenation of all: a nested one of each column costs a third more
            pieces += present
            continue
        missing = pl.col(str(at)).is_null()
        pieces.append(pl.when(missing).then(pl.lit("n")).otherwise(pl.concat_str(present)))
    frame = pl.DataFrame(columns_at)
    keys = frame.select(pl.concat_str(pieces).cast(pl.Binary)).to_series()
    return pl.Series("hash", list(map(xxh3_128_hexdigest, keys.to_list())), dtype=pl.String)


def _spelled(values: Values) -> pl.Series:
    # messages are shown as a conversation, which says less than they do
    return values.series if values.encoding == "messages" else shown(values)


def _tag(values: Values, name: str) -> pl.Expr:
    if values.encoding == "json":
        quoted = pl.Series(name, values.series).str.starts_with('"').fill_null(value=False)
        return pl.when(pl.lit(quoted)).then(pl.lit("t")).otherwise(pl.lit("j"))
    return pl.lit("t" if values.encoding == "text" else "j")
