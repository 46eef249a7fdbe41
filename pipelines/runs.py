"""What the API needs of runs: start one at once, know how it stands, end it, and whether runs can start."""

import logging
import math
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pipelines.graphql import DagsterClient, DagsterDown, DagsterUnclear
from pipelines.home import worker_is_reachable
from pipelines.launches import FLUSH_JOB, Launch, launch_of
from storage import operations
from storage.domain.errors import PromptlakeError
from storage.domain.operations import QUEUED, Operation
from storage.leases import LeaseRefused, held_lease
from storage.log_pace import ASK_LEASE, needs_flush_now
from storage.settings import Settings
from storage.store import Store

_log = logging.getLogger("promptlake.runs")

POLL_EVERY_S = 1.0
POLL_TIMEOUT_S = 0.2
_RETRY_EVERY_S = 0.5
_RETRY_FOR_S = 20.0
_MAX_PENDING = 256
_POLLS_KEPT = 10_000
_READY_TIMEOUT_S = 2.0
_FLUSH_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether runs can be launched (`dagster`) and executed (`workers`)."""

    dagster: bool
    workers: bool


class Runs:
    """Runs of operations, by way of the Dagster webserver. Shared by the threads of an API process.

    A launch is a matter of speed only: whatever goes wrong with it, the outbox sensor launches later.
    """

    def __init__(self, settings: Settings, store: Store) -> None:
        host = "127.0.0.1" if settings.dagster_host in {"0.0.0.0", "::", ""} else settings.dagster_host  # noqa: S104
        self._settings = settings
        self._store = store
        self._client = DagsterClient(host, settings.dagster_port)
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="launch")
        self._pending = threading.BoundedSemaphore(_MAX_PENDING)
        self._closed = threading.Event()
        self._asked: OrderedDict[int, float] = OrderedDict()
        self._asked_lock = threading.Lock()
        self._flush_asked_at = -math.inf
        self._flush_looks = False
        self._known = (-math.inf, Readiness(dagster=False, workers=False))

    def close(self) -> None:
        """Let launches under way end; those that wait are left to the sensor."""
        self._closed.set()
        self._threads.shutdown(cancel_futures=True)

    def launch_soon(self, operation: Operation, sheet_id: str = "") -> None:
        """Launch a queued operation's run, on another thread; returns at once and never fails.

        `sheet_id` names the partition of an operation on a sheet that clients see.
        """
        if not self._closed.is_set() and self._pending.acquire(blocking=False):
            self._threads.submit(self._launch, launch_of(operation, sheet_id))

    def _launch(self, launch: Launch) -> None:
        try:
            run_id = self._launch_when_up(launch)
            if run_id is not None:
                operations.record_launch(self._store, launch.operation_no, launch.attempt, run_id)
        except (DagsterUnclear, PromptlakeError) as error:
            _log.warning("operation %s is left to the sensor: %s", launch.operation_no, error)
        finally:
            self._pending.release()

    def _launch_when_up(self, launch: Launch) -> str | None:
        """Launch; while nothing of Dagster is up yet, try for some seconds, but only what is still queued."""
        until = time.monotonic() + _RETRY_FOR_S
        again = False
        while True:
            try:
                if again and (run_id := self._client.find_run(launch.run_key)) is not None:
                    return run_id
                if worker_is_reachable(self._settings):
                    return self._client.launch(launch)
            except DagsterDown as error:
                _log.debug("operation %s waits: %s", launch.operation_no, error)
            again = True
            if time.monotonic() > until or self._closed.wait(_RETRY_EVERY_S) or not self._is_queued(launch):
                return None

    def _is_queued(self, launch: Launch) -> bool:
        found = operations.get_operation(self._store, launch.operation_no)
        return found.status == QUEUED and found.attempt == launch.attempt and found.run_id is None

    def flush_soon(self) -> None:
        """Have the logs flushed, as many came, on another thread; returns at once and never fails."""
        lately = time.monotonic() - self._flush_asked_at <= _FLUSH_EVERY_S
        if not lately and not self._flush_looks and not self._closed.is_set():
            self._flush_looks = True
            self._threads.submit(self._flush)

    def _flush(self) -> None:
        try:
            # looked at often, asked for seldom: what is not due now may be in a second
            if needs_flush_now(self._store) and worker_is_reachable(self._settings):
                self._flush_asked_at = time.monotonic()
                self._launch_flush()
        except LeaseRefused:  # another process of the API is asking
            pass
        except (DagsterDown, DagsterUnclear, PromptlakeError) as error:
            _log.debug("the flush is left to its sensor: %s", error)
        finally:
            self._flush_looks = False

    def _launch_flush(self) -> None:
        with held_lease(self._store, ASK_LEASE):
            if not self._client.is_under_way(FLUSH_JOB):
                self._client.launch_job(FLUSH_JOB)

    def refresh(self, operation: Operation) -> Operation:
        """Return an operation as it stands after asking Dagster for its run, at most once a second each.

        The catalog's word stays when Dagster does not answer within 200 ms.
        """
        if operation.ended or operation.run_id is None or not self._may_ask(operation.no):
            return operation
        try:
            state = self._client.get_state(operation.run_id, POLL_TIMEOUT_S)
        except (DagsterDown, DagsterUnclear):
            return operation
        if not state.ended:
            return operation
        operations.settle_ended_run(
            self._store, operation.no, operation.attempt, operation.run_id, cancelled=state.cancelled
        )
        return operations.get_operation(self._store, operation.no)

    def _may_ask(self, no: int) -> bool:
        now = time.monotonic()
        with self._asked_lock:
            if now - self._asked.get(no, -math.inf) < POLL_EVERY_S:
                return False
            self._asked[no] = now
            self._asked.move_to_end(no)
            while len(self._asked) > _POLLS_KEPT:
                self._asked.popitem(last=False)
        return True

    def terminate_soon(self, operation: Operation) -> None:
        """End the run of an operation that was cancelled or whose sheet was deleted; never fails.

        Cancel in the catalog first: a run that cannot be reached then finds nothing to do.
        """
        if operation.run_id is not None and not self._closed.is_set():
            self._threads.submit(self._terminate, operation.run_id)

    def _terminate(self, run_id: str) -> None:
        try:
            self._client.terminate(run_id)
        except (DagsterDown, DagsterUnclear) as error:
            _log.warning("run %s is not told to stop: %s", run_id, error)

    def readiness(self) -> Readiness:
        """Tell whether runs can start now; asked at most once a second, takes up to two where they cannot."""
        asked_at, known = self._known
        if time.monotonic() - asked_at > POLL_EVERY_S:
            known = self._ask_readiness()
            self._known = (time.monotonic(), known)
        return known

    def _ask_readiness(self) -> Readiness:
        try:
            loaded = self._client.is_loaded(_READY_TIMEOUT_S)
        except (DagsterDown, DagsterUnclear):
            loaded = False
        return Readiness(loaded, worker_is_reachable(self._settings))
