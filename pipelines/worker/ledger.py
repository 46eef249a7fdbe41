"""What the worker host reads and writes of Dagster's runs: which live, and ends that no run can tell."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dagster import DagsterInstance, DagsterRunStatus, RunsFilter
from sqlalchemy.exc import SQLAlchemyError

from pipelines.worker.lanes import Job

_UNFINISHED = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


class LedgerBusy(Exception):
    """The run storage cannot be read or written now; ask again later."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run that Dagster holds for alive: `begun` when a process has taken it."""

    job: Job
    begun: bool


class Ledger:
    """The host's view of the Dagster instance; opens a connection a call, so that forks inherit none.

    Every method raises `LedgerBusy` when the storage cannot be reached.
    """

    def __init__(self, instance: DagsterInstance) -> None:
        self._instance = instance

    def list_unfinished(self) -> list[Unfinished]:
        """List the runs that were handed to a launcher and have not ended, oldest first."""
        with _storage():
            runs = self._instance.get_runs(RunsFilter(statuses=_UNFINISHED))
        return [
            Unfinished(Job.from_tags(run.run_id, run.tags), run.status != DagsterRunStatus.STARTING)
            for run in reversed(runs)
        ]

    def list_ended(self, run_ids: list[str]) -> set[str]:
        """Return which of these runs have ended in Dagster, or are gone."""
        if not run_ids:
            return set()
        with _storage():
            runs = self._instance.get_runs(RunsFilter(run_ids=run_ids))
        return set(run_ids) - {run.run_id for run in runs if not run.is_finished}

    def was_launched(self, run_id: str) -> bool:
        """Tell whether a launcher had the run; one started in a notebook or by a command line had none."""
        with _storage():
            return self._instance.get_run_stats(run_id).launch_time is not None

    def has_begun(self, run_id: str) -> bool:
        """Tell whether the run has left STARTING."""
        with _storage():
            run = self._instance.get_run_by_id(run_id)
        return run is None or run.status != DagsterRunStatus.STARTING

    def report_dead(self, run_id: str, cause: str) -> None:
        """End a run whose process is no more: canceled if that was asked for, else failed with its cause."""
        with _storage():
            run = self._instance.get_run_by_id(run_id)
            if run is None or run.is_finished:
                return
            if run.status == DagsterRunStatus.CANCELING:
                self._instance.report_run_canceled(run, f"Canceled. {cause}")
            else:
                self._instance.report_run_failed(run, cause)


@contextmanager
def _storage() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise LedgerBusy(type(error).__name__) from error
