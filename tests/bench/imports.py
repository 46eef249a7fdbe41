"""One small import, timed as a client sees it."""

import time
from dataclasses import dataclass
from typing import Any

from tests.bench.material import file_source, small_csv
from tests.bench.runs import Dagster
from tests.bench.service import Service

_POLL_S = 0.01
_TABLES = "/api/public/v2/tables"
_BODY = file_source("ten.csv", small_csv(10))


@dataclass(frozen=True, slots=True)
class Imported:
    """From the start of the POST: to its answer, to the run's record and start, to a poll: `succeeded`."""

    post_ms: float
    launch_ms: float
    start_ms: float
    total_ms: float


def table_of(service: Service) -> str:
    return str(service.post(_TABLES, {"title": "bench"})["table"]["id"])


def import_small(service: Service, dagster: Dagster, table: str) -> Imported:
    """Import ten rows into a new sheet and wait for the end.

    Raises:
        RuntimeError: the import failed.
    """
    submitted = time.time()
    begun = time.perf_counter()
    operation = service.post(f"{_TABLES}/{table}/sheets", _BODY, status=202)["operation_id"]
    post_ms = (time.perf_counter() - begun) * 1000
    wait(service, table, operation)
    total_ms = (time.perf_counter() - begun) * 1000
    run = dagster.find(tags={"operation_id": operation})[0]
    return Imported(
        post_ms=post_ms,
        launch_ms=(run.created - submitted) * 1000,
        start_ms=((run.started or 0) - submitted) * 1000,
        total_ms=total_ms,
    )


def wait(
    service: Service, table: str, operation: str, *, seconds: float = 120, poll_s: float = _POLL_S
) -> dict[str, Any]:
    """Poll until an import has succeeded; return the operation.

    Raises:
        RuntimeError: it failed.
        TimeoutError: it took too long.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found: dict[str, Any] = service.get(f"{_TABLES}/{table}/sheets/operations/{operation}")["operation"]
        if found["status"] == "succeeded":
            return found
        if found["status"] == "failed":
            raise RuntimeError(f"import failed: {found['error_message']}")
        time.sleep(poll_s)
    raise TimeoutError(f"import is {found['status']} after {seconds} s")
