"""What a run does with an operation: finds the work of its kind, and lets no failure go untold."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from storage import operations
from storage.domain.errors import PromptlakeError
from storage.operations import ClaimRefused
from storage.store import Store

_log = logging.getLogger("promptlake.work")


class Report(Protocol):
    """Tells a person who watches the run how far it is; never content of rows or requests."""

    def __call__(self, message: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class ColumnRecord:
    """What a run did for one column: ids and counts. `errors` by code; `latencies` by upper bound in ms."""

    column_id: str
    type: str
    facts: Mapping[str, int | float | str]
    errors: Mapping[str, int] = field(default_factory=dict)
    latencies: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run made: rows, bytes and a version for the asset's record; counts and ids only."""

    facts: Mapping[str, int | float | str] = field(default_factory=dict)
    schema: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[ColumnRecord, ...] = ()


Work = Callable[[Store, int, int, str, Report], Outcome]


def run_operation(
    work: Mapping[str, Work], store: Store, no: int, attempt: int, run_id: str, report: Report
) -> Outcome:
    """Do the work of an operation's kind; whatever goes wrong is told to the client as well as to Dagster.

    Raises:
        ClaimRefused: the operation is another run's, or has ended; nothing was done.
    """
    kind = operations.get_operation(store, no).kind
    try:
        return work[kind](store, no, attempt, run_id, report)
    except ClaimRefused:
        raise
    except PromptlakeError as error:
        operations.fail(store, no, attempt, error.message)
        raise
    except Exception as error:
        # work that was cancelled, or whose sheet was deleted, is interrupted wherever it stands: no fault
        if operations.fail(store, no, attempt, f"Internal error ({type(error).__name__}) in run {run_id}."):
            _log.exception("operation %s failed", no)
        raise


def reopen(store: Store, no: int, attempt: int, parent_run_id: str | None) -> int:
    """Return the attempt that a run works on: re-executing a failed run opens the operation again.

    Raises:
        ClaimRefused: the operation did not fail in that run, or its sheet has moved on since.
    """
    if parent_run_id is None:
        return attempt
    return operations.reopen(store, no, parent_run_id).attempt
