"""The warm run launcher: hands a run's id to the worker host instead of starting an interpreter."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from dagster import DagsterRun
from dagster._config import UserConfigSchema
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._serdes import ConfigurableClass
from dagster._serdes.config_class import ConfigurableClassData

from pipelines.home import worker_socket
from pipelines.worker.lanes import Job
from pipelines.worker.wire import HostDown, HostSilent, ask


class WarmRunLauncher(RunLauncher[Any], ConfigurableClass):
    """Runs start in a process that waits, warm, below the worker host beside this Dagster home.

    With the host down a launch fails at once and so does its run; whoever wanted the work done launches
    it again when the host is back.
    """

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        self._socket = worker_socket(Path(os.environ["DAGSTER_HOME"]).parent)
        super().__init__()  # type: ignore[no-untyped-call]  # dagster's own

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        return cls(inst_data=inst_data, **config_value)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Hand a run to the host, which starts it or lets it wait for its lane.

        Raises:
            HostDown: no host is there, or it is stopping.
        """
        run = context.dagster_run
        job = Job.from_tags(run.run_id, run.tags)
        message = {"verb": "launch", "run_id": job.run_id, "lane": job.lane, "tenant": job.tenant}
        try:
            answer = ask(self._socket, message)
        except HostSilent:
            # It may have heard; if it did not, it finds the run as STARTING when it looks.
            return
        if not answer.get("ok"):
            raise HostDown(str(answer.get("error")))

    def terminate(self, run_id: str) -> bool:
        """Ask the run's process to stop; it is killed when it does not within seconds."""
        run = self._instance.get_run_by_id(run_id) if self.has_instance else None
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        try:
            return bool(ask(self._socket, {"verb": "terminate", "run_id": run_id}).get("ok"))
        except (HostDown, HostSilent):
            # The host ends every run that it finds CANCELING without a process, when it is back.
            return False

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Tell whether a started run has a live process; processes do not outlive their host."""
        try:
            answer = ask(self._socket, {"verb": "health", "run_id": run.run_id})
        except HostSilent as error:
            return CheckRunHealthResult(WorkerStatus.RUNNING, str(error), transient=True)
        except HostDown as error:
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, str(error))
        return CheckRunHealthResult(WorkerStatus[answer["status"]], answer.get("cause"))

    def get_run_worker_debug_info(
        self,
        run: DagsterRun,
        include_container_logs: bool | None = True,  # noqa: ARG002, FBT001, FBT002  # signature of the base class
    ) -> str | None:
        """Return what the host knows of the death of the run's process."""
        try:
            cause: str | None = ask(self._socket, {"verb": "health", "run_id": run.run_id}).get("cause")
        except (HostDown, HostSilent) as error:
            return str(error)
        return cause
