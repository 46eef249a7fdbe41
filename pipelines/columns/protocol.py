"""What a runner of a column type is: values in, values and errors out; it reads and writes no sheet."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
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
class ColumnContext:
    """A column and for whom it is computed.

    `column.config` names columns by id; `column.dependencies` tell under which variable or name
    (`config_meta`) and for which key each is read. `pinned` is what `RunnerKind.pin` gave.
    """

    store: Store
    who: Principal
    column: Column
    pinned: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext(ColumnContext):
    """For what a runner works: the operation is the run's own, `who` the user that asked for it.

    `heard` takes how many more rows are computed and failed within a chunk that takes long, for the client;
    what it raises ends the run. `wallet` holds what the operation may still spend: who calls a model pays
    from it.
    """

    operation: Operation
    heard: Callable[[int, int], None] = lambda _completed, _failed: None
    wallet: Wallet = field(default_factory=lambda: Wallet(None))


def _nothing(_: ColumnContext) -> str:
    return ""


Keys = Callable[[Chunk], list[bytes | None]]
"""By what the result of each row is known to others; None: nobody is asked, or no other answer counts."""


def _no_keys(_: ColumnContext) -> AbstractContextManager[Keys]:
    return nullcontext(lambda chunk: [None] * len(chunk))


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
    `keys` tells what would be looked up before somebody is asked, and asks nobody; it raises as `open`.
    `keeps`: answers are dear, so each piece is kept for a run that is killed; else they are computed again.
    `first_rows`: a run begins with so few rows where nobody can tell how long their results are; `compute`
    may raise TooMuchAtOnce for more than one row.
    """

    engine: Callable[[Column], str]
    open: Callable[[RunContext], AbstractContextManager[Runner]]
    chunk_rows: int = 65_536
    keeps: bool = False
    pin: Callable[[ColumnContext], str] = _nothing
    keys: Callable[[ColumnContext], AbstractContextManager[Keys]] = _no_keys
    first_rows: int | None = None
