"""score with an embedding: how alike a model finds two texts; each pair once a workspace, many a call."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from pipelines.columns.asking import CHUNK_ROWS, Asking, Item, Prepared, Ready
from pipelines.columns.asks import REVISION, Ask, Misfit, Outcome
from pipelines.columns.models import Model, line_of
from pipelines.columns.protocol import (
    ColumnContext,
    EngineUnavailable,
    Keys,
    RunContext,
    Runner,
    RunnerKind,
)
from pipelines.columns.score import passed
from pipelines.columns.values import numbers, shown
from pipelines.columns.vectors import MOST_TEXTS, Vectors, spent_together
from pipelines.providers.caller import Answered, Caller, CallFailed, opened_caller
from pipelines.providers.protocol import PARTIAL
from storage.domain.columns import Column
from storage.domain.llm_providers import ANTHROPIC
from storage.domain.results import Answers, CellError, Chunk, Values

_DIGITS = 12
_SAME, _NOTHING_ALIKE = Ready(1.0), Ready(0.0)


@dataclass(frozen=True, slots=True)
class Cosine:
    """The cosine of two vectors, 0 where it is negative."""

    spelled: str = "cosine"
    mends: bool = False
    slow: bool = False
    given_up: CellError | None = None

    def read(self, answered: Answered) -> float:
        one, two = answered.vectors
        return self.between(one, two)

    def between(self, one: Sequence[float], two: Sequence[float]) -> float:
        """Raises: Misfit: there is none."""
        if len(one) != len(two):
            raise Misfit("its vectors have different lengths")
        size = math.hypot(*one) * math.hypot(*two)
        found = sum(map(operator.mul, one, two)) / size if size else 0.0
        if not math.isfinite(found):
            raise Misfit("its vectors hold numbers that are not finite")
        return round(min(1.0, max(0.0, found)), _DIGITS)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Asks about the two texts of a row."""

    model: Model
    column: Column

    def prepare(self, chunk: Chunk) -> Callable[[int], Item]:
        sources = [chunk.columns[UUID(source)] for source in self.column.config["sources"]]
        one, two = (shown(source).fill_null("") for source in sources)

        def item_at(row: int) -> Item:
            texts = [str(one[row]), str(two[row])]
            if texts[0] == texts[1]:
                return _SAME
            if "" in texts:
                # providers refuse the empty text
                return _NOTHING_ALIKE
            return Ask(self.model.provider, {"model": self.model.name, "input": texts}, Cosine())

        return item_at


class _Alike:
    """Computes pairs from the vectors of their texts, which many pairs ask for together."""

    def __init__(self, model: Model) -> None:
        self._vectors = Vectors(model.name)

    async def __call__(self, caller: Caller, ask: Ask) -> Outcome:
        try:
            found = await self._vectors.embedded(caller, ask.arguments["input"])
        except CallFailed as failed:
            return Outcome(None, failed.metrics, CellError(failed.failure.error_type, failed.failure.message))
        spent = spent_together(found)
        try:
            return Outcome(Cosine().between(*(one.vector for one in found)), spent)
        except Misfit as misfit:
            return Outcome(None, spent, CellError(PARTIAL, f"The answer cannot be used: {misfit}"))


@dataclass(frozen=True, slots=True)
class _Scores:
    """Likenesses as scores: with a threshold passed or not."""

    asking: Asking

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        config = self.asking.context.column.config
        for piece in self.asking.compute(chunk):
            yield replace(piece, values=Values("double", passed(numbers(piece.values), config)))


@contextmanager
def _prepared(context: ColumnContext) -> Iterator[Prepared]:
    named = context.column.config["embedding"]
    if named["provider"] == ANTHROPIC:
        raise EngineUnavailable("Anthropic has no embeddings: name another provider in config.embedding")
    model = Model(named["provider"], named["model"], {})
    yield Prepared(model, _Pairs(model, context.column).prepare, shares=True)


@contextmanager
def _keys(context: ColumnContext) -> Iterator[Keys]:
    with _prepared(context) as asked:
        yield asked.keys


@contextmanager
def _open(context: RunContext) -> Iterator[Runner]:
    with _prepared(context) as asked, opened_caller(line_of(context, asked.model)) as caller:
        yield _Scores(
            Asking(
                context,
                caller,
                asked.prepare,
                shares=asked.shares,
                computes=_Alike(asked.model),
                # each has two texts
                asks_a_call=MOST_TEXTS // 2,
            )
        )


KIND = RunnerKind(
    engine=lambda _: f"embeds {REVISION}", open=_open, chunk_rows=CHUNK_ROWS, keeps=True, keys=_keys
)
