"""Which runner computes which columns, by `Column.runner`; what has none is refused with its cells."""

from collections.abc import Mapping

from pipelines.columns import code, comparison, composition, embedding, filled, llm, prompt_template, score
from pipelines.columns.protocol import RunnerKind

RUNNERS: Mapping[str, RunnerKind] = {
    "code": code.KIND,
    "comparison": comparison.KIND,
    "composition": composition.KIND,
    "embedding": embedding.KIND,
    "filled": filled.KIND,
    "llm": llm.KIND,
    "prompt_template": prompt_template.KIND,
    "score": score.KIND,
}
