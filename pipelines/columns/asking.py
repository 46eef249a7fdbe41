"""Computes cells by asking a model: equal computations once, known ones not at all; results as they come."""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from pipelines.columns.asks import Ask, Outcome, compute
from pipelines.columns.models import Model
from pipelines.columns.protocol import BudgetReached, RunContext
from pipelines.columns.values import values_of
from pipelines.providers.caller import Caller
from pipelines.providers.gate import Claims
from storage.domain.model_calls import saved
from storage.domain.model_results import ModelResult
from storage.domain.results import Answers, CellError, Chunk
from storage.model_results import find_results, keep_results

PIECE = 64
PIECE_WITHIN_S = 0.1
CHUNK_ROWS = 16_384
_HEARTBEAT_S = 0.5


@dataclass(frozen=True, slots=True)
class Ready:
    """A value that needs no model."""

    value: Any


Item = Ask | Ready | CellError
Prepare = Callable[[Chunk], Callable[[int], Item]]
"""Chunk -> (place in it -> what is to be done for its cell)."""
Computes = Callable[[Caller, Ask], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a column asks of which model; `shares` says whether equal computations may answer each other."""

    model: Model
    prepare: Prepare
    shares: bool

    def keys(self, chunk: Chunk) -> list[bytes | None]:
        """Return what the result of each row is known by to the workspace."""
        item_at = self.prepare(chunk)
        items = (item_at(row) for row in range(len(chunk)))
        return [item.key if self.shares and isinstance(item, Ask) else None for item in items]


def _claims(folder: Path) -> Claims:
    """Return the claims of this process: one of a folder, for locks of the kernel are the whole process's."""
    with _ONE_AT_A_TIME:
        return _opened_claims(folder)


_ONE_AT_A_TIME = Lock()


@cache
def _opened_claims(folder: Path) -> Claims:
    return Claims(folder)


@dataclass(slots=True)
class _Piece:
    """Answers that go out together."""

    values: dict[int, Any] = field(default_factory=dict)
    errors: dict[int, CellError] = field(default_factory=dict)
    metrics: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    cached: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.values or self.errors)

    def hit(self, rows: Iterable[int], known: ModelResult) -> None:
        for row in rows:
            self.values[row], self.metrics[row] = known.value, saved(known.metrics)
            self.cached.add(row)

    def computed(self, rows: list[int], outcome: Outcome) -> None:
        """Take what came of a computation: the first cell shows the calls, equal ones that they had none."""
        metrics = outcome.metrics.to_json()
        for at, row in enumerate(rows):
            if outcome.error is not None:
                self.errors[row] = outcome.error
            else:
                self.values[row] = outcome.value
                if at:
                    self.cached.add(row)
            if not at or outcome.error is None:
                self.metrics[row] = saved(metrics) if at else metrics

    def answers(self) -> Answers:
        rows = [*self.values, *self.errors]
        where = {row: at for at, row in enumerate(rows)}
        return Answers(
            values_of([self.values.get(row) for row in rows]),
            rows,
            {where[row]: error for row, error in self.errors.items()},
            {where[row]: one for row, one in self.metrics.items()},
            frozenset(where[row] for row in self.cached),
        )


class Asking:
    """The runner of model columns; `shares` says whether equal computations may answer each other.

    `computes` computes an ask where that is not one call, but one for up to `asks_a_call`.
    """

    def __init__(
        self,
        context: RunContext,
        caller: Caller,
        prepare: Prepare,
        *,
        shares: bool,
        computes: Computes = compute,
        asks_a_call: int = 1,
    ) -> None:
        self.context, self.caller, self.shares = context, caller, shares
        self.computes, self.asks_a_call = computes, asks_a_call
        self.claims = _claims(context.store.settings.root / "run" / "models")
        self.wallet = context.wallet
        self._prepare = prepare

    def compute(self, chunk: Chunk) -> Iterator[Answers]:
        """Yield results as they come; often nothing, so that a cancelled run notices it.

        Raises:
            BudgetReached: the next call might cost more than is left; all that was asked is answered.
        """
        turn = _Turn(self, self._prepare(chunk), len(chunk))
        try:
            yield from turn.run()
        finally:
            turn.end()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, ModelResult]:
        """Look results up; a forced recalculation trusts only its own."""
        operation = self.context.operation
        return find_results(self.context.store, operation, keys, own=bool(operation.spec.get("force")))

    def keep(self, results: Sequence[ModelResult]) -> None:
        keep_results(self.context.store, self.context.operation, results)


class _Turn:
    """The computation of one chunk.

    A key is in one place at a time: among the asks to be started, at the model, or elsewhere, where another
    process computes it. `rows_of` holds all of them with their rows.
    """

    def __init__(self, asking: Asking, item_at: Callable[[int], Item], count: int) -> None:
        self._asking, self._item_at = asking, item_at
        self._caller, self._claims = asking.caller, asking.claims
        self._rows = iter(range(count))
        self._rows_of: dict[bytes, list[int]] = {}
        self._asks: dict[bytes, Ask] = {}
        self._to_start: deque[bytes] = deque()
        self._elsewhere: list[bytes] = []
        self._claimed: set[bytes] = set()
        self._looked_at = self._taken_at = 0.0
        places = self._caller.line.store.settings.model_calls
        # as many again wait at the gate, so that it never waits for this thread; more a kill would lose
        self._most_open = 2 * places * asking.asks_a_call
        self._most_taken = min(PIECE, places)

    def run(self) -> Iterator[Answers]:
        more = True
        while more or self._rows_of:
            piece = _Piece()
            if more and self._room and not self._to_start:
                more = self._read(piece)
            self._look_elsewhere(piece)
            broke = self._start()
            idle = (not more or not self._room or broke) and not piece
            self._take(piece, wait=idle)
            yield piece.answers()
            if broke and not self._caller.open_count:
                self._await_money()

    def _await_money(self) -> None:
        """Wait for what calls of other columns reserve and may not need.

        Raises:
            BudgetReached: nobody reserves anything, and the next call is not covered.
        """
        if self._asking.wallet.exceeds(self._asks[self._to_start[0]].highest_price):
            raise BudgetReached
        time.sleep(PIECE_WITHIN_S)

    @property
    def _room(self) -> bool:
        return self._caller.open_count < self._most_open

    def _read(self, piece: _Piece) -> bool:
        """Look at the next rows; False when there are no more."""
        new: list[bytes] = []
        # what is claimed here and not begun soon keeps other processes from it
        rows = list(islice(self._rows, self._most_taken))
        for row in rows:
            item = self._item_at(row)
            if isinstance(item, CellError):
                piece.errors[row] = item
            elif isinstance(item, Ready):
                piece.values[row] = item.value
            else:
                key = item.key if self._asking.shares else row.to_bytes(8, "big")
                if key not in self._rows_of:
                    self._asks[key] = item
                    new.append(key)
                self._rows_of.setdefault(key, []).append(row)
        if self._asking.shares:
            self._claim(new, piece)
        else:
            self._to_start.extend(new)
        return len(rows) == self._most_taken

    def _look_elsewhere(self, piece: _Piece) -> None:
        """Take over what another process no longer computes."""
        now = time.monotonic()
        if self._elsewhere and now - self._looked_at >= PIECE_WITHIN_S:
            self._looked_at = now
            keys, self._elsewhere = self._elsewhere, []
            self._claim(keys, piece)

    def _claim(self, keys: Sequence[bytes], piece: _Piece) -> None:
        """Claim keys: what others have is elsewhere, what is known is answered, the rest is to be asked."""
        mine = [key for key in keys if self._claims.claim(key)]
        self._claimed.update(mine)
        # only now: who had a claim before has kept what it computed
        known = self._asking.find(mine) if mine else {}
        for key in keys:
            if key not in self._claimed:
                self._elsewhere.append(key)
            elif key in known:
                piece.hit(self._rows_of.pop(key), known[key])
                self._forget(key)
            else:
                self._to_start.append(key)

    def _start(self) -> bool:
        """Ask what nobody knows, as far as there is room; True when the budget does not allow the next."""
        while self._to_start and self._room:
            if not self._start_one():
                return True
        return False

    def _start_one(self) -> bool:
        key = self._to_start[0]
        wallet, ask = self._asking.wallet, self._asks[key]
        # to tell the highest price costs a tenth of a millisecond
        if wallet.is_bounded and not wallet.reserve(self._mine(key), ask.highest_price):
            return False
        self._to_start.popleft()
        self._caller.start(key, partial(_compute, self._asking.computes, ask))
        return True

    def _mine(self, key: bytes) -> tuple[int, bytes]:
        """Name a call among those of all columns of the run."""
        return self._asking.context.column.no, key

    def _take(self, piece: _Piece, *, wait: bool) -> None:
        """Take what has ended; it is kept before anybody is told."""
        few = self._caller.done.qsize() < self._most_taken
        if few and not wait and time.monotonic() - self._taken_at < PIECE_WITHIN_S:
            return
        first_s = 0.0
        if wait:
            first_s = PIECE_WITHIN_S if self._elsewhere else _HEARTBEAT_S
        if wait and self._elsewhere and not self._caller.open_count:
            time.sleep(PIECE_WITHIN_S)
        ended = self._caller.take(self._most_taken, first_s, PIECE_WITHIN_S if wait else 0.0)
        self._taken_at = time.monotonic()
        kept = []
        for key, outcome in ended:
            if isinstance(outcome, BaseException):
                raise outcome
            self._asking.wallet.settle(self._mine(key), outcome.metrics.price)
            piece.computed(self._rows_of.pop(key), outcome)
            if outcome.error is None and self._asking.shares:
                kept.append(ModelResult(key, outcome.value, outcome.metrics.to_json()))
        self._asking.keep(kept)
        for key, _ in ended:
            self._forget(key)

    def _forget(self, key: bytes) -> None:
        self._asks.pop(key, None)
        if key in self._claimed:
            self._claimed.remove(key)
            self._claims.release(key)

    def end(self) -> None:
        """Let go of what is not done."""
        for key in list(self._claimed):
            self._forget(key)


async def _compute(computes: Computes, ask: Ask, caller: Caller) -> Outcome:
    return await computes(caller, ask)
