"""Which runner computes which type of column; a type without one is refused with its cells."""

from collections.abc import Mapping

from pipelines.columns import code, comparison, composition, llm, prompt_template, score
from pipelines.columns.protocol import RunnerKind

RUNNERS: Mapping[str, RunnerKind] = {
    "code": code.KIND,
    "comparison": comparison.KIND,
    "composition": composition.KIND,
    "llm": llm.KIND,
    "prompt_template": prompt_template.KIND,
    "score": score.KIND,
}
