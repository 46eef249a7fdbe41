"""A sensor of upkeep asks for a run only while the host is up and no run of the job is under way."""

from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus, SkipReason, build_sensor_context
from dagster._core.test_utils import create_run_for_test

from pipelines.defs.due_work import LIVE, reason_to_wait
from storage.settings import Settings

DUE = "3 files are due"


def reason(settings: Settings, *runs: tuple[str, DagsterRunStatus]) -> str | None:
    with DagsterInstance.ephemeral() as instance:
        for job, status in runs:
            create_run_for_test(instance, job_name=job, status=status)
        skip = reason_to_wait(build_sensor_context(instance=instance), settings, "merge", DUE)
        return skip.skip_message if isinstance(skip, SkipReason) else None


# Dagster takes a queued run only with its origin
@pytest.mark.parametrize("status", [one for one in LIVE if one != DagsterRunStatus.QUEUED])
def test_one_run_at_a_time(tmp_path: Path, status: DagsterRunStatus) -> None:
    settings = Settings(home=tmp_path, run_launcher="stock")
    assert reason(settings, ("merge", status)) == f"{DUE}; a run is under way."


def test_runs_that_ended_and_other_jobs_are_not_waited_for(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, run_launcher="stock")
    ended = [
        ("merge", one)
        for one in (DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED)
    ]
    assert reason(settings, *ended, ("other", DagsterRunStatus.STARTED)) is None


def test_without_its_worker_host_nothing_is_asked_for(tmp_path: Path) -> None:
    assert reason(Settings(home=tmp_path)) == f"{DUE}; the worker host is down."
