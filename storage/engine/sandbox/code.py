"""Code of a tenant over rows: checked, then evaluated row by row in workers of its own.

A worker serves one operation. A row that meets a limit ends its worker; the rows of its batch are then tried
one at a time, so that the row that is at fault fails alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from storage.domain.errors import InvalidConfig, LimitReached
from storage.engine.sandbox.kinds import Kind
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.process import Refused, Worker

_LONGEST_MESSAGE = 1000


@dataclass(frozen=True, slots=True)
class RowResult:
    """What became of one row: a JSON value, or an error with the line of the code, from 1."""

    value: Any = None
    error: str | None = None
    message: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxedCode:
    """The evaluator of one language for one workspace."""

    pool: Pool
    kind: Kind
    workspace_id: int
    batch_rows: int = 1000
    most_limits: int = 20

    def check(self, code: str) -> None:
        """Check that the code parses.

        Raises:
            InvalidConfig: it does not; names line and position, from 1.
            Unguarded: nothing is evaluated on this machine.
            Unavailable: no worker became free.
        """
        # kept for the workspace: what is only parsed leaves nothing behind
        with self.pool.lease(self.kind, self.workspace_id) as worker:
            _prepare(worker, code)

    def evaluate(self, code: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[RowResult]:
        """Yield the result of each row, in order.

        After `most_limits` rows that met a limit the rest fails untried.

        Raises:
            InvalidConfig: the code does not parse.
            Unguarded: nothing is evaluated on this machine.
            Unavailable: no worker became free.
        """
        done, one_by_one_until, limits = 0, 0, 0
        with _Workers(self, code) as workers:
            while done < len(rows):
                if limits >= self.most_limits:
                    yield _UNTRIED
                    done += 1
                    continue
                size = 1 if done < one_by_one_until else self.batch_rows
                batch = rows[done : done + size]
                worker = workers.get()
                try:
                    results = _read(worker.ask({"rows": batch}), len(batch))
                except (LimitReached, InvalidConfig) as error:
                    if len(batch) > 1:
                        one_by_one_until = done + len(batch)
                        continue
                    limits += isinstance(error, LimitReached)
                    results = [RowResult(error=_code_of(error), message=error.message)]
                yield from results
                done += len(results)


class _Workers:
    """One prepared worker at a time, replaced when it has ended or is spent."""

    def __init__(self, evaluator: SandboxedCode, code: str) -> None:
        self._evaluator, self._code = evaluator, code
        self._lease = ExitStack()
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lease.close()

    def get(self) -> Worker:
        if self._worker is None or self._worker.spent or not self._worker.ready:
            self._lease.close()
            one = self._evaluator
            self._worker = self._lease.enter_context(one.pool.lease(one.kind, one.workspace_id, keep=False))
            _prepare(self._worker, self._code)
        return self._worker


_UNTRIED = RowResult(error="limit_reached", message="Not tried: too many rows before it met a limit")


def _code_of(error: InvalidConfig) -> str:
    return f"{error.limit}_limit" if isinstance(error, LimitReached) else "invalid_input"


def _prepare(worker: Worker, code: str) -> None:
    try:
        worker.ask({"prepare": code})
    except Refused as refused:
        _refuse(refused.problem)


def _refuse(problem: Mapping[str, Any]) -> NoReturn:
    place = ", ".join(
        f"{name} {problem[name]}" for name in ("line", "position") if isinstance(problem.get(name), int)
    )
    why = str(problem.get("why"))[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
    raise InvalidConfig(f"code: {place}: {why}" if place else f"code: {why}") from None


def _read(answer: Any, asked: int) -> list[RowResult]:
    """Read what a worker says of its first rows; it may have been broken by the tenant's code."""
    if not isinstance(answer, list) or not 1 <= len(answer) <= asked:
        raise LimitReached("output", "its result cannot be read")
    return [_result(part) for part in answer]


def _result(part: Any) -> RowResult:
    match part:
        case [value]:
            return RowResult(value=value)
        case {"error": str() as error, "message": str() as message, "line": int() | None as line}:
            return RowResult(error=_printable(error), message=_printable(message), line=line)
    return RowResult(error="unreadable", message="The result cannot be read")


def _printable(text: str) -> str:
    return text[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
