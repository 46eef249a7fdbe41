"""Which rows of a frame are visited, and frames put together."""

from collections.abc import Sequence

import polars as pl

from storage.engine.column_frames import ColumnFrame, joined_values

_FEW_ROWS = 100


def picked(
    own: ColumnFrame, statuses: Sequence[str], row_nos: Sequence[int], rows: set[int] | None
) -> pl.Series:
    """Return the places of the cells that have one of the statuses (none: any) and one of the rows."""
    count = len(own.values)
    if not statuses and rows is None:
        return pl.Series(range(count), dtype=pl.UInt32)
    if count <= _FEW_ROWS:
        # an expression of frames costs more than that many rows
        known = zip(own.statuses.to_list(), row_nos, strict=False)
        found = [
            at
            for at, (status, no) in enumerate(known)
            if (not statuses or status in statuses) and (rows is None or no in rows)
        ]
        return pl.Series(found, dtype=pl.UInt32)
    mask = own.statuses.is_in(list(statuses)) if statuses else pl.Series([True]).new_from_index(0, count)
    if rows is not None:
        mask &= pl.Series([no in rows for no in row_nos], dtype=pl.Boolean)
    return mask.arg_true()


def joined_frames(pieces: Sequence[ColumnFrame]) -> ColumnFrame:
    """Return frames one behind the other."""
    return ColumnFrame(
        joined_values([one.values for one in pieces]),
        pl.concat([one.statuses for one in pieces]),
        pl.concat([one.hashes for one in pieces]),
    )
