"""What is needed of Dagster's GraphQL interface: launch, find, look at and end runs; is the code loaded."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from pipelines.home import LOCATION
from pipelines.launches import Launch

_LAUNCH = """
mutation(
  $repository: RepositorySelector!, $partitions: String!, $partition: String!, $run: ExecutionParams!
) {
  addDynamicPartition(
    repositorySelector: $repository, partitionsDefName: $partitions, partitionKey: $partition
  ) { __typename }
  launchRun(executionParams: $run) { __typename ... on LaunchRunSuccess { run { runId } } }
}"""
_LAUNCH_JOB = """
mutation($run: ExecutionParams!) {
  launchRun(executionParams: $run) { __typename ... on LaunchRunSuccess { run { runId } } }
}"""
_LIVE = """
query($job: String!) {
  runsOrError(
    filter: {pipelineName: $job, statuses: [QUEUED, NOT_STARTED, STARTING, STARTED, CANCELING]}, limit: 1
  ) { ... on Runs { results { runId } } }
}"""
_FIND = """
query($tags: [ExecutionTag!]) {
  runsOrError(filter: {tags: $tags}, limit: 1) { ... on Runs { results { runId } } }
}"""
_STATE = "query($id: ID!) { runOrError(runId: $id) { __typename ... on Run { status } } }"
_TERMINATE = """
mutation($id: String!, $policy: TerminateRunPolicy!) {
  terminateRun(runId: $id, terminatePolicy: $policy) { __typename }
}"""
_LOADED = """
{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError { __typename } } } } }
"""

MISSING = "MISSING"
_ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED", MISSING})
_REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": LOCATION}


class DagsterDown(ConnectionError):
    """The webserver cannot be reached: nothing was asked of it."""


class DagsterUnclear(RuntimeError):
    """The webserver refused, failed or did not answer in time; what it did is not known."""


@dataclass(frozen=True, slots=True)
class RunState:
    """A run's status in Dagster's words; `MISSING` when it has been deleted."""

    status: str

    @property
    def ended(self) -> bool:
        return self.status in _ENDED

    @property
    def cancelled(self) -> bool:
        return self.status == "CANCELED"


def _run_id(launched: dict[str, Any]) -> str:
    if launched["__typename"] != "LaunchRunSuccess":
        raise DagsterUnclear(f"the launch was refused: {launched['__typename']}")
    return str(launched["run"]["runId"])


class DagsterClient:
    """Calls the webserver; safe to share between threads. Every call raises the errors above.

    A connection a call, of the standard library: on the way to the first request it costs nothing to load,
    and a kept one would be closed by the webserver after five idle seconds.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port

    def launch(self, launch: Launch) -> str:
        """Register the launch's partition and start its run; return the run's id."""
        tags = [{"key": key, "value": value} for key, value in launch.tags.items()]
        run = {
            "selector": {**_REPOSITORY, "jobName": launch.job},
            "runConfigData": launch.run_config,
            "executionMetadata": {"tags": tags},
        }
        variables = {
            "repository": _REPOSITORY,
            "partitions": launch.partitions,
            "partition": launch.partition,
            "run": run,
        }
        return _run_id(self._ask(_LAUNCH, variables)["launchRun"])

    def launch_job(self, job: str) -> str:
        """Start a run of a job that takes no configuration; return the run's id."""
        run = {"selector": {**_REPOSITORY, "jobName": job}, "runConfigData": {}}
        return _run_id(self._ask(_LAUNCH_JOB, {"run": run})["launchRun"])

    def is_under_way(self, job: str) -> bool:
        """Tell whether a run of a job has not ended."""
        return bool(self._ask(_LIVE, {"job": job})["runsOrError"].get("results"))

    def find_run(self, run_key: str) -> str | None:
        """Return the run of a launch's key, if there is one."""
        found = self._ask(_FIND, {"tags": [{"key": "dagster/run_key", "value": run_key}]})["runsOrError"]
        return next((str(run["runId"]) for run in found.get("results", [])), None)

    def get_state(self, run_id: str, timeout_s: float) -> RunState:
        found = self._ask(_STATE, {"id": run_id}, timeout_s)["runOrError"]
        if found["__typename"] == "RunNotFoundError":
            return RunState(MISSING)
        if found["__typename"] != "Run":
            raise DagsterUnclear(f"the run's status is not told: {found['__typename']}")
        return RunState(found["status"])

    def terminate(self, run_id: str) -> None:
        """End a run: its process is asked to stop; one that has not begun never begins."""
        answer = self._ask(_TERMINATE, {"id": run_id, "policy": "SAFE_TERMINATE"})["terminateRun"]
        if answer["__typename"] == "TerminateRunFailure":
            # Dagster does not cancel a run that waits to start, but it can mark it as canceled.
            self._ask(_TERMINATE, {"id": run_id, "policy": "MARK_AS_CANCELED_IMMEDIATELY"})

    def is_loaded(self, timeout_s: float) -> bool:
        """Tell whether jobs can be launched: the webserver has loaded them from the code server."""
        entries = self._ask(_LOADED, {}, timeout_s)["workspaceOrError"].get("locationEntries", [])
        kinds = [(entry["locationOrLoadError"] or {}).get("__typename") for entry in entries]
        return bool(kinds) and all(kind == "RepositoryLocation" for kind in kinds)

    def _ask(self, document: str, variables: dict[str, Any], timeout_s: float = 30.0) -> dict[str, Any]:
        body = json.dumps({"query": document, "variables": variables})
        connection = HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            connection.connect()
        except OSError as error:
            raise DagsterDown("the Dagster webserver is not reachable") from error
        try:
            connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
        except (OSError, HTTPException, ValueError) as error:
            raise DagsterUnclear(f"no clear answer from Dagster: {type(error).__name__}") from error
        finally:
            connection.close()
        if not isinstance(answer, dict) or not answer.get("data"):
            raise DagsterUnclear("Dagster answered with an error")
        found: dict[str, Any] = answer["data"]
        return found
