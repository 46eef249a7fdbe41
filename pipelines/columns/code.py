"""code: a function over the row in PYTHON, JAVASCRIPT or SQL, evaluated in the sandbox."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import UUID

from pipelines.columns.protocol import EngineUnavailable, RunContext, RunnerKind
from pipelines.columns.values import values_of
from storage.domain.columns import Column
from storage.domain.errors import Unguarded
from storage.domain.results import Answers, Chunk
from storage.sandbox import Evaluation, code_of, engine_of


@dataclass(frozen=True, slots=True)
class Code:
    """Evaluates the code of one column; `names` are those that the code knows its columns by."""

    evaluation: Evaluation
    names: Mapping[str, UUID]
    heard: Callable[[int, int], None]

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        """Yield one answer for the whole chunk."""
        columns = {name: chunk.columns[column_id] for name, column_id in self.names.items()}
        found = self.evaluation.evaluate(columns, len(chunk), self.heard)
        yield Answers(values_of(found.values), errors=found.errors)


def names_of(column: Column) -> dict[str, UUID]:
    """The columns that a column reads, by the names that they were written with."""
    return {
        str(edge["config_meta"]["variable_name"]): UUID(edge["column_id"]) for edge in column.dependencies
    }


@contextmanager
def _open(context: RunContext) -> Iterator[Code]:
    config = context.column.config
    evaluator = code_of(context.store, context.who, config["language"])
    with ExitStack() as stack:
        try:
            evaluation = stack.enter_context(evaluator.opened(config["code"]))
        except Unguarded as error:
            raise EngineUnavailable(error.message) from error
        yield Code(evaluation, names_of(context.column), context.heard)


KIND = RunnerKind(engine=lambda column: engine_of(column.config["language"]), open=_open, first_rows=256)
