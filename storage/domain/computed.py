"""What came of the cells that a run visited, between the work that computed them and their commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from storage.domain.cells import CellState
from storage.domain.results import CellError, Values

MOST_PATCHED = 10_000
MOST_PATCHED_BYTES = 8 << 20
"""More results than this of one column, or more bytes of them, become a segment; fewer lie in the overlay."""
_LATENCY_BOUNDS_MS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)


def latency_bound(latency_ms: float) -> str:
    """Return the bar of a histogram that a latency belongs to, by its upper bound in ms."""
    return next((str(bound) for bound in _LATENCY_BOUNDS_MS if latency_ms <= bound), "more")


@dataclass(frozen=True, slots=True)
class Computed:
    """Results of a block's cells.

    `places` in the block were tried, in the order of `values`, `hashes` (a String series), and by place in
    them `errors`, `metrics` and `cached`; `unchanged` places hold what they should.
    """

    places: Sequence[int]
    values: Values
    hashes: Any
    unchanged: Sequence[int] = ()
    errors: Mapping[int, CellError] = field(default_factory=dict)
    metrics: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    cached: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which run of which operation computed a cell, when the sheet had which version."""

    execution_id: str
    version_number: int

    def done(
        self, input_hash: str | None, metrics: Mapping[str, Any] | None = None, *, cached: bool = False
    ) -> CellState:
        """Return the state of a cell that was computed."""
        return CellState(
            cached=cached,
            input_hash=input_hash,
            request_metrics=metrics,
            execution_id=self.execution_id,
            last_computed_version=self.version_number,
        )

    def failed(
        self, error: CellError, old_hash: str | None, metrics: Mapping[str, Any] | None = None
    ) -> CellState:
        """Return the state of a cell whose computation failed: its hash is that of the value it keeps."""
        return CellState(
            "failed",
            error=error.code,
            error_message=error.message,
            input_hash=old_hash,
            request_metrics=metrics,
            execution_id=self.execution_id,
            last_computed_version=self.version_number,
        )
