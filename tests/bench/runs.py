"""Dagster's runs, asked for and started over its GraphQL."""

import time
from dataclasses import dataclass
from typing import Any

import httpx2

_LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
_RUNS = """
query Runs($filter: RunsFilter!) {
  runsOrError(filter: $filter) {
    ... on Runs { results { runId status creationTime startTime endTime } }
  }
}
"""
_TERMINATE = """
mutation End($ids: [String!]!) { terminateRuns(runIds: $ids) { __typename } }
"""
ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED"})


@dataclass(frozen=True, slots=True)
class Run:
    """One run; times are epoch seconds."""

    id: str
    status: str
    created: float
    started: float | None
    ended: float | None


class Dagster:
    """A client of the running webserver."""

    def __init__(self, url: str) -> None:
        self._client = httpx2.Client(base_url=url, timeout=30)

    def close(self) -> None:
        self._client.close()

    def launch(self, job: str, op: str, config: dict[str, Any], tags: dict[str, str]) -> str:
        """Launch a run and return its id."""
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": "promptlake",
            "jobName": job,
        }
        params = {
            "selector": selector,
            "runConfigData": {"ops": {op: {"config": config}}},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        }
        answer = self._ask(_LAUNCH, {"params": params})["launchRun"]
        if "run" not in answer:
            raise RuntimeError(f"launchRun: {answer}")
        return str(answer["run"]["runId"])

    def find(self, *, run_id: str | None = None, tags: dict[str, str] | None = None) -> list[Run]:
        wanted: dict[str, Any] = {}
        if run_id is not None:
            wanted["runIds"] = [run_id]
        if tags:
            wanted["tags"] = [{"key": key, "value": value} for key, value in tags.items()]
        rows = self._ask(_RUNS, {"filter": wanted})["runsOrError"]["results"]
        return [
            Run(row["runId"], row["status"], row["creationTime"], row["startTime"], row["endTime"])
            for row in rows
        ]

    def wait(self, run_id: str, *statuses: str, seconds: float = 60) -> Run:
        """Wait until a run has one of the statuses.

        Raises:
            TimeoutError: it has not in time.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            run = self.find(run_id=run_id)[0]
            if run.status in statuses:
                return run
            time.sleep(0.01)
        raise TimeoutError(f"run {run_id} is {run.status}, not {statuses}")

    def end(self, run_ids: list[str]) -> None:
        self._ask(_TERMINATE, {"ids": run_ids})

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        answer = self._client.post("/graphql", json={"query": query, "variables": variables})
        body = answer.json()
        if "errors" in body:
            raise RuntimeError(f"GraphQL: {body['errors']}")
        found: dict[str, Any] = body["data"]
        return found
