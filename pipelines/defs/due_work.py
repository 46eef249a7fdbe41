"""What sensors of upkeep share: a run is asked for when work is due, can be done, and is not being done."""

from dagster import DagsterRunStatus, RunsFilter, SensorEvaluationContext, SkipReason

from pipelines.home import worker_is_reachable
from storage.settings import Settings

LIVE = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def reason_to_wait(
    context: SensorEvaluationContext, settings: Settings, job_name: str, due: str
) -> SkipReason | None:
    """Say why the work that is `due` (a clause) is not asked for in this tick; None: it is."""
    if not worker_is_reachable(settings):
        return SkipReason(f"{due}; the worker host is down.")
    if context.instance.get_runs(RunsFilter(job_name=job_name, statuses=LIVE), limit=1):
        return SkipReason(f"{due}; a run is under way.")
    return None
