"""Rows handed to an evaluator of code, and what comes back, one a row."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pipelines.columns.values import values_of
from storage.domain.results import Values
from storage.engine.sandbox.code import Evaluated, Evaluation, SandboxedCode
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.process import Worker


@dataclass(frozen=True)
class Cell:
    value: Any = None
    error: str | None = None
    message: str = ""


def _cells(found: Evaluated, count: int) -> list[Cell]:
    assert len(found.values) == count
    return [
        Cell(value)
        if at not in found.errors
        else Cell(value, found.errors[at].code, found.errors[at].message)
        for at, value in enumerate(found.values)
    ]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Values]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: values_of([row.get(name) for row in rows]) for name in names}


def cells(evaluator: SandboxedCode, code: Any, rows: Sequence[Mapping[str, Any]]) -> list[Cell]:
    with evaluator.opened(code) as evaluation:
        found = evaluation.evaluate(columns_of(rows), len(rows))
    return _cells(found, len(rows))


def asked_of(worker: Worker, code: Any, rows: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """As `cells`, but of a worker that is there: only for code that does no harm to the next."""
    lease = ExitStack()
    evaluation = Evaluation(SandboxedCode(Pool(), worker.kind, 1), code, lease)
    evaluation._worker = worker
    worker.ask({"prepare": code})
    return _cells(evaluation.evaluate(columns_of(rows), len(rows)), len(rows))


def one(evaluator: SandboxedCode, code: str, **row: Any) -> Cell:
    (cell,) = cells(evaluator, code, [row])
    return cell
