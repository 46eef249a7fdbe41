"""What a runner of a column type is: values in, values and errors out; it reads and writes no sheet."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pipelines.columns.wallet import Wallet
from storage.domain.columns import Column
from storage.domain.errors import PromptlakeError
from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.domain.results import Answers, Chunk
from storage.store import Store


class EngineUnavailable(PromptlakeError):
    """This installation cannot compute the column; the message says what is missing."""

    code = "engine_unavailable"


class BudgetReached(Exception):
    """The next call of a model might cost more than the operation may spend."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """For whom a runner works: the operation is the run's own, `who` the user that asked for it.

    `column.config` names columns by id; `column.dependencies` tell under which variable or name
    (`config_meta`) and for which key each is read. `heard` takes how many more rows are computed and failed
    within a chunk that takes long, for the client; what it raises ends the run. `pinned` is what
    `RunnerKind.pin` gave. `wallet` holds what the operation may still spend: who calls a model pays from it.
    """

    store: Store
    who: Principal
    operation: Operation
    column: Column
    heard: Callable[[int, int], None] = lambda _completed, _failed: None
    pinned: str = ""
    wallet: Wallet = field(default_factory=lambda: Wallet(None))


def _nothing(_: RunContext) -> str:
    return ""


class Runner(Protocol):
    """Computes the rows of one column in one run."""

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        """Yield what comes of a chunk, in pieces: each is kept before the next is asked for.

        What waits for others (models) yields often, what computes yields once. Every row is answered once.
        A failure of single rows is an error of theirs; what is raised here ends the run.
        """


@dataclass(frozen=True, slots=True)
class RunnerKind:
    """A column type's runner.

    `engine` names engine and version, for they decide whether an old value still holds: it enters every
    input_hash. `open` raises EngineUnavailable, or InvalidConfig: then every cell fails with its sentence.
    `pin` resolves once a run what the column names outside of sheets (a prompt's version), enters every
    input_hash too, and is handed what it gave to an earlier attempt; it raises as `open`, and NotFound.
    `keeps`: answers are dear, so each piece is kept for a run that is killed; else they are computed again.
    """

    engine: Callable[[Column], str]
    open: Callable[[RunContext], AbstractContextManager[Runner]]
    chunk_rows: int = 65_536
    keeps: bool = False
    pin: Callable[[RunContext], str] = _nothing
