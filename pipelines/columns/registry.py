"""Which runner computes which type of column; a type without one is refused with its cells."""

from collections.abc import Mapping

from pipelines.columns import comparison, composition
from pipelines.columns.protocol import RunnerKind

RUNNERS: Mapping[str, RunnerKind] = {
    "comparison": comparison.KIND,
    "composition": composition.KIND,
}
