"""One block of a column: what is as it should be stays, what cannot be computed fails, the rest is run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.columns.hashing import hash_rows
from pipelines.columns.protocol import BudgetReached, Runner
from pipelines.columns.values import to_list, values_of
from storage.domain.computed import Computed
from storage.domain.results import (
    INTERNAL,
    UPSTREAM_FAILED,
    UPSTREAM_STALE,
    Answers,
    CellError,
    Chunk,
    Values,
)
from storage.recalculation_jobs import Block, Reading

_UNANSWERED = CellError(INTERNAL, "The engine gave no answer for this row")
Told = Callable[[Answers, Sequence[int], Sequence[str]], bool]
"""Is told of each piece with the places that it answers and their hashes; False: compute no more."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer of an earlier attempt."""

    value: Any
    error: CellError | None
    metrics: Mapping[str, Any] | None
    cached: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done with the cells of a block, by their places in it.

    `unchanged` hold what they should; `run_at` are to be computed; those in `reasons` cannot be, and say
    why. The rest stay stale, for what they read of this run turned stale behind its back.
    """

    columns: Mapping[UUID, Values]
    hashes: pl.Series
    unchanged: pl.Series
    run_at: pl.Series
    reasons: Mapping[int, CellError]


def plan_block(job: Reading, block: Block, digest: str) -> Plan:
    """Decide what is to be done with a block's cells; nothing is computed yet."""
    columns = {one.column_id: block.sources[one.column_id].values for one in job.sources}
    hashes = hash_rows(digest, list(columns.values()), len(block.places))
    stopped, reasons, later = _unready(job, block)
    ready = ~(stopped | later)
    if job.wanted.force:
        return Plan(columns, hashes, pl.Series(dtype=pl.UInt32), ready.arg_true(), reasons)
    same = (hashes == block.own.hashes).fill_null(value=False) & ready
    return Plan(columns, hashes, same.arg_true(), (ready & ~same).arg_true(), reasons)


@dataclass(slots=True)
class _Cells:
    """Results one by one, where they do not come as one piece."""

    values: dict[int, Any] = field(default_factory=dict)
    errors: dict[int, CellError] = field(default_factory=dict)
    metrics: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    cached: set[int] = field(default_factory=set)


def visit(
    job: Reading,
    block: Block,
    runner: Runner,
    digest: str,
    chunk_rows: int,
    *,
    kept: Mapping[int, tuple[str, Kept]] | None = None,
    told: Told | None = None,
) -> tuple[Computed, bool]:
    """Return the results of a block's cells, and whether computing was stopped before its end."""
    count = len(block.places)
    plan = plan_block(job, block, digest)
    if len(plan.run_at) == count and not kept and chunk_rows >= count and told is None:
        return _whole(block, plan.columns, plan.hashes, runner), False
    cells = _Cells(errors=dict(plan.reasons))
    left = _recalled(cells, plan.run_at.to_list(), block.row_nos, plan.hashes, kept or {})
    ended = _run(cells, left, block, plan.columns, plan.hashes, runner, chunk_rows, told)
    return _gathered(cells, plan.hashes, plan.unchanged.to_list()), ended


def failed_block(block: Block, error: CellError) -> Computed:
    """Return results of cells that all fail alike."""
    count = len(block.places)
    nothing = pl.Series([None], dtype=pl.String).new_from_index(0, count)
    return Computed(range(count), Values("text", nothing), nothing, errors=dict.fromkeys(range(count), error))


def no_cells(block: Block) -> Computed:
    """Return results of a block none of whose cells is visited."""
    nothing = pl.Series(dtype=pl.String)
    return Computed((), Values(block.own.values.encoding, block.own.values.series.clear()), nothing)


def _whole(block: Block, columns: Mapping[UUID, Values], hashes: pl.Series, runner: Runner) -> Computed:
    """Run a whole block in one piece, without looking at its rows one by one."""
    count = len(block.places)
    pieces = list(runner.compute(Chunk(block.row_nos, block.places, columns)))
    if len(pieces) == 1 and pieces[0].rows is None:
        (one,) = pieces
        return Computed(
            range(count), one.values, hashes, errors=one.errors, metrics=one.metrics, cached=one.cached
        )
    cells = _Cells()
    for piece in pieces:
        _take(cells, piece, list(range(count)))
    _complete(cells, range(count))
    return _gathered(cells, hashes, [])


def _unready(job: Reading, block: Block) -> tuple[pl.Series, dict[int, CellError], pl.Series]:
    """Return which cells cannot be computed, for what they read is failed or stale, and why.

    The last are those that stay stale: what they read is of this run too, and turned stale behind its back.
    """
    mask = pl.Series([False]).new_from_index(0, len(block.places))
    later = mask
    reasons: dict[int, CellError] = {}
    for one in job.sources:
        if not one.computed:
            continue
        statuses = block.sources[one.column_id].statuses
        for status, code in (("failed", UPSTREAM_FAILED), ("stale", UPSTREAM_STALE)):
            found = statuses == status
            if code == UPSTREAM_STALE and one.no in job.wanted.column_nos:
                later |= found & ~mask
            elif found.any():
                error = CellError(code, _MESSAGES[code].format(one.title))
                reasons |= dict.fromkeys((found & ~mask).arg_true().to_list(), error)
                mask |= found
    return mask, reasons, later & ~mask


_MESSAGES = {
    UPSTREAM_FAILED: "Column {} failed, which this one reads",
    UPSTREAM_STALE: "Column {} is stale, which this one reads: recalculate it as well",
}


def _recalled(
    cells: _Cells,
    places: Sequence[int],
    row_nos: Sequence[int],
    hashes: pl.Series,
    kept: Mapping[int, tuple[str, Kept]],
) -> list[int]:
    """Take what an earlier attempt computed from the same; return the places that are left."""
    if not kept:
        return list(places)
    left = []
    for place in places:
        found = kept.get(row_nos[place])
        if found is None or found[0] != hashes[place]:
            left.append(place)
            continue
        one = found[1]
        if one.error is None:
            cells.values[place] = one.value
        else:
            cells.errors[place] = one.error
        if one.metrics is not None:
            cells.metrics[place] = one.metrics
        if one.cached:
            cells.cached.add(place)
    return left


def _run(
    cells: _Cells,
    places: Sequence[int],
    block: Block,
    columns: Mapping[UUID, Values],
    hashes: pl.Series,
    runner: Runner,
    chunk_rows: int,
    told: Told | None,
) -> bool:
    """Run the rows at these places, chunk by chunk; return whether it was stopped."""
    for first in range(0, len(places), chunk_rows):
        some = places[first : first + chunk_rows]
        try:
            for piece in runner.compute(chunk_at(block, columns, some)):
                _take(cells, piece, some)
                answered = some if piece.rows is None else [some[row] for row in piece.rows]
                if told is not None and not told(piece, answered, [hashes[place] for place in answered]):
                    return True
        except BudgetReached:
            return True
        _complete(cells, some)
    return False


def chunk_at(block: Block, columns: Mapping[UUID, Values], places: Sequence[int]) -> Chunk:
    """Return the rows at some places of a block, to be computed."""
    at = pl.Series(places, dtype=pl.UInt32)
    return Chunk(
        [block.row_nos[place] for place in places],
        [block.places[place] for place in places],
        {one: Values(values.encoding, values.series.gather(at)) for one, values in columns.items()},
    )


def _take(cells: _Cells, piece: Answers, places: Sequence[int]) -> None:
    rows = places if piece.rows is None else [places[row] for row in piece.rows]
    for at, (place, value) in enumerate(zip(rows, to_list(piece.values), strict=True)):
        error = piece.errors.get(at)
        if error is None:
            cells.values[place] = value
        else:
            cells.errors[place] = error
    cells.metrics |= {rows[at]: metrics for at, metrics in piece.metrics.items()}
    cells.cached |= {rows[at] for at in piece.cached}


def _complete(cells: _Cells, places: Iterable[int]) -> None:
    for place in places:
        if place not in cells.values and place not in cells.errors:
            cells.errors[place] = _UNANSWERED


def _gathered(cells: _Cells, hashes: pl.Series, unchanged: Sequence[int]) -> Computed:
    places = sorted({*cells.values, *cells.errors})
    where = {place: at for at, place in enumerate(places)}
    return Computed(
        places,
        values_of([cells.values.get(place) for place in places]),
        hashes.gather(pl.Series(places, dtype=pl.UInt32)),
        unchanged,
        {where[place]: error for place, error in cells.errors.items()},
        {where[place]: metrics for place, metrics in cells.metrics.items()},
        frozenset(where[place] for place in cells.cached),
    )
