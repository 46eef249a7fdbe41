"""The pool: deals waiting runs to children, keeps some idle, and settles what becomes of the runs."""

import logging
import math
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from pipelines.worker.children import Child, Nursery
from pipelines.worker.lanes import Lanes
from pipelines.worker.ledger import Ledger, LedgerBusy

_log = logging.getLogger("promptlake.worker")

MIN_IDLE = 2
RUNS_PER_CHILD = 200
CANCEL_GRACE_S = 5.0
_TRIM_AFTER_S = 30.0
_FORK_AHEAD_AFTER_S = 1.0
_MAX_FORK_DELAY_S = 30.0
_MAX_STARTS = 3
_CAUSES_KEPT = 1_000


class Pool:
    """Children and the runs they have. `watch` and `unwatch` connect a child to the host's loop."""

    def __init__(
        self,
        lanes: Lanes,
        ledger: Ledger,
        watch: Callable[[Child], None],
        unwatch: Callable[[Child], None],
    ) -> None:
        self.lanes = lanes
        self.children: list[Child] = []
        self._ledger = ledger
        self._watch = watch
        self._unwatch = unwatch
        self._nursery = Nursery()
        self._starts: dict[str, int] = {}
        self._dead: OrderedDict[str, str] = OrderedDict()
        self._unreported: set[str] = set()
        self._fork_delay_s = 0.0
        self._next_fork_at = 0.0
        self._lacking_since = math.inf

    def deal(self) -> None:
        """Give waiting runs to idle children, as the lanes allow."""
        idle = [child for child in self.children if child.idle]
        while idle and (job := self.lanes.take()) is not None:
            self._starts[job.run_id] = self._starts.get(job.run_id, 0) + 1
            idle.pop().start(job.run_id)

    def fork(self, now: float, inherited: Callable[[], Iterable[socket.socket]]) -> None:
        """Fork what is missing for the runs that may start and, soon, `MIN_IDLE` idle ones beside them."""
        while now >= self._next_fork_at and self._lacks_one(now):
            try:
                child = self._nursery.fork(inherited())
            except OSError as error:
                self._delay_forks(f"a worker process cannot be forked: {error}")
                return
            self.children.append(child)
            self._watch(child)
            self._next_fork_at = now + self._fork_delay_s

    def _lacks_one(self, now: float) -> bool:
        busy = sum(child.run_id is not None for child in self.children)
        spare = self._usable() - busy - self.lanes.startable()
        if spare >= MIN_IDLE:
            self._lacking_since = math.inf
            return False
        if not busy or spare < 1:
            return True
        # a short run is soon done, and a process made beside it would take a second of the cores it works on
        self._lacking_since = min(self._lacking_since, now)
        return now - self._lacking_since >= _FORK_AHEAD_AFTER_S

    def trim(self, now: float) -> None:
        """Let go children that have been idle beyond need."""
        idle = [child for child in self.children if child.idle]
        for child in idle[MIN_IDLE:]:
            if now - child.idle_since > _TRIM_AFTER_S:
                child.retire()

    def hear(self, child: Child) -> None:
        """Read what a child tells; bury it when it is gone."""
        messages = child.lines.receive()
        for message in messages or []:
            if message["event"] == "ready":
                child.ready, self._fork_delay_s = True, 0.0
            else:
                self._done(child, retire=message["retire"])
        if messages is None:
            self._bury(child)

    def interrupt(self, run_id: str) -> bool:
        """Stop a run that works or waits; False when it is neither."""
        found = next((child for child in self.children if child.run_id == run_id), None)
        if found is not None:
            found.interrupt(CANCEL_GRACE_S)
        elif self.lanes.knows(run_id):
            self.settle(run_id, "It had not begun.")
        else:
            return False
        return True

    def cause(self, run_id: str) -> str | None:
        """Return why a run's process is dead, if it is remembered."""
        return self._dead.get(run_id)

    def settle(self, run_id: str, cause: str) -> None:
        """End a run whose process is no more; one that never began goes to another process."""
        job = self.lanes.drop(run_id)
        self._dead[run_id] = cause
        while len(self._dead) > _CAUSES_KEPT:
            self._dead.popitem(last=False)
        try:
            again = job is not None and self._starts.get(run_id, 0) < _MAX_STARTS
            if again and job is not None and not self._ledger.has_begun(run_id):
                self.lanes.add(job, first=True)
                return
            self._ledger.report_dead(run_id, cause)
        except LedgerBusy:
            self._unreported.add(run_id)
            return
        self._starts.pop(run_id, None)
        self._unreported.discard(run_id)

    def reconcile(self) -> None:
        """Compare with Dagster: adopt unknown waiting runs, end those without a process, stop ended ones."""
        try:
            for run_id in list(self._unreported):
                self.settle(run_id, self._dead[run_id])
            alive = self._ledger.list_unfinished()
            for run in alive:
                if self.lanes.knows(run.job.run_id):
                    continue
                if not run.begun:
                    self.lanes.add(run.job)
                elif self._ledger.was_launched(run.job.run_id):
                    self.settle(run.job.run_id, "The run's process ended with its worker host.")
            self._stop_ended({run.job.run_id for run in alive})
        except LedgerBusy as error:
            _log.warning("runs are not compared with Dagster now: %s", error)

    def _stop_ended(self, alive: set[str]) -> None:
        busy = {child.run_id: child for child in self.children if child.run_id and child.run_id not in alive}
        for run_id in self._ledger.list_ended(list(busy)):
            busy[run_id].interrupt(CANCEL_GRACE_S)

    def _usable(self) -> int:
        return sum(not child.retiring for child in self.children)

    def _done(self, child: Child, *, retire: bool) -> None:
        if child.run_id is not None:
            self.lanes.drop(child.run_id)
            self._starts.pop(child.run_id, None)
        child.run_id, child.kill_at = None, None
        child.runs_done += 1
        child.idle_since = time.monotonic()
        if retire or child.runs_done >= RUNS_PER_CHILD:
            child.retire()

    def _bury(self, child: Child) -> None:
        self._unwatch(child)
        self.children.remove(child)
        cause = child.bury()
        if child.run_id is not None:
            _log.warning("run %s: %s", child.run_id, cause)
            self.settle(child.run_id, cause)
        elif not child.ready:
            self._delay_forks(f"a worker process ended before it could take a run: {cause}")

    def _delay_forks(self, why: str) -> None:
        self._fork_delay_s = min(_MAX_FORK_DELAY_S, max(1.0, 2 * self._fork_delay_s))
        self._next_fork_at = time.monotonic() + self._fork_delay_s
        _log.error("%s; the next is forked in %.0f s", why, self._fork_delay_s)
