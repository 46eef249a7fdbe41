"""Results of a computation, between the store, which keeps them, and the runners, which make them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from storage.domain.encodings import Encoding


@dataclass(frozen=True, slots=True)
class Values:
    """A run of JSON values of one column, all in one encoding.

    `series` is a polars Series: String for `text`, and for `json` and `messages` (compact JSON, one text a
    value); Int64, Float64, Boolean for the others. Null is null.
    """

    encoding: Encoding
    series: Any

    def __len__(self) -> int:
        return len(self.series)


class TooMuchAtOnce(Exception):
    """The results of so many rows are too long together: fewer are to be computed at once."""


@dataclass(frozen=True, slots=True)
class CellError:
    """Why a cell has no value: a code that a program can act on, and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows to compute: their numbers, and the values of each column that is read, by column id.

    `row_indices` are the places that the rows had when the run began.
    """

    row_nos: Sequence[int]
    row_indices: Sequence[int]
    columns: Mapping[UUID, Values]

    def __len__(self) -> int:
        return len(self.row_nos)


@dataclass(frozen=True, slots=True)
class Answers:
    """What came of some rows of a chunk: `rows` are their places in it, None means all, in order.

    `errors` and `metrics` (request_metrics, as on the wire) are by place in `values`; a row that has an
    error has no value. `cached` are the places that were answered without a call.
    """

    values: Values
    rows: Sequence[int] | None = None
    errors: Mapping[int, CellError] = field(default_factory=dict)
    metrics: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    cached: frozenset[int] = frozenset()


UPSTREAM_FAILED = "upstream_failed"
UPSTREAM_STALE = "upstream_stale"
ENGINE_UNAVAILABLE = "engine_unavailable"
MISSING_SOURCE = "missing_source"
INTERNAL = "internal_error"
