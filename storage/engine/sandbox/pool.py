"""A warm pool of workers: started when first asked for, one tenant each, ended when idle or spent."""

import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Condition
from time import monotonic
from typing import Any

from storage.domain.errors import Unavailable, Unguarded
from storage.domain.walls import Wall
from storage.engine.sandbox.keeper import Keeper
from storage.engine.sandbox.kinds import Kind
from storage.engine.sandbox.process import Worker
from storage.engine.sandbox.turns import Ticket, Turns

# Walls do not come back by themselves: so long a refusal is repeated without another trial.
_UNGUARDED_S = 60.0
# A start costs as much as a thousand small requests: a worker that is busy is waited for, so long.
_GROW_AFTER_S = 0.02


class Pool:
    """At most `most` workers at once, and at most half of them busy for one tenant.

    A worker that has served a tenant serves no other. One fresh worker of each kind in use is kept ready,
    so that neither a new tenant nor the replacement of a spent worker waits for a start. In a pool that
    `stays_ready` it outlasts idle times, for callers who wait for milliseconds.
    """

    def __init__(
        self, *, most: int = 8, wait_s: float = 5.0, idle_s: float = 300.0, stays_ready: bool = False
    ) -> None:
        self._most, self._wait_s, self._idle_s = most, wait_s, idle_s
        self._stays_ready = stays_ready
        self._changed = Condition()
        self._idle: list[tuple[float, Worker]] = []  # the longest idle first
        self._size = 0
        self._turns = Turns(share=max(1, most // 2))
        self._preparing: set[str] = set()
        self._keeper: Keeper | None = None
        self._owner = os.getpid()
        self._closed = False
        self._unguarded: dict[str, tuple[float, Unguarded]] = {}

    @contextmanager
    def lease(self, kind: Kind, tenant: int, *, keep: bool = True) -> Iterator[Worker]:
        """Hand out a worker that stands behind its walls, for this tenant alone.

        With `keep` it is one that may have served the tenant before, and may again; without it is ended
        at the end of the block.

        Raises:
            Unguarded: a wall does not stand on this machine.
            Unavailable: none became free, or could be started.
        """
        ticket = Ticket(kind, tenant)
        worker = self._take(ticket)
        try:
            self._check_walls(worker)
            yield worker
        except BaseException:
            # in the middle of an exchange nobody can say what its next frame would be
            keep = keep and worker.at_rest
            raise
        finally:
            self._give_back(worker, ticket, keep=keep)

    def ask(self, kind: Kind, tenant: int, request: Any) -> Any:
        """Ask one thing of a worker of the tenant; raises as `lease` and `Worker.ask`."""
        with self.lease(kind, tenant) as worker:
            return worker.ask(request)

    def walls(self, kind: Kind) -> tuple[Wall, ...]:
        """Start a worker for its proof alone.

        Raises:
            Unguarded: it cannot be started at all on this machine.
            Unavailable: it did not start.
        """
        worker = self._started(kind)
        try:
            return worker.walls()
        finally:
            worker.end()

    def close(self) -> None:
        """End every worker; those that are busy end with their request."""
        if self._owner != os.getpid():
            return  # a copy made by a fork: the workers belong to the other process
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._size -= len(idle)
            keeper, self._keeper = self._keeper, None
            self._changed.notify_all()
        for _, worker in idle:
            worker.end()
        if keeper is not None:
            keeper.stop()

    def _take(self, ticket: Ticket) -> Worker:
        """Return a worker bound to the tenant: its own, else a fresh one, else one that is started now."""
        with self._changed:
            if self._turns.is_crowded(ticket.tenant, monotonic()):
                raise Unavailable("All sandbox workers of the workspace are busy", retry_after_s=1)
            self._turns.wait(ticket)
            try:
                worker = self._wait_for(ticket)
            except BaseException:
                self._turns.leave(ticket)
                raise
            self._turns.serve(ticket, monotonic())
            self._size += worker is None
        try:
            worker = worker or self._started(ticket.kind)
        except BaseException:
            self._forget(ticket)
            raise
        worker.tenant = ticket.tenant
        self._prepare(ticket.kind)
        return worker

    def _wait_for(self, ticket: Ticket) -> Worker | None:
        """Wait for an idle worker, or (None) for room to start one."""
        now = monotonic()
        deadline, grow_at = now + self._wait_s, now + _GROW_AFTER_S
        while True:
            self._check_usable(ticket.kind)
            if self._turns.may_go(ticket, full=self._size >= self._most, has_idle=self._has_idle):
                worker = self._pick(ticket.kind, ticket.tenant)
                if worker is not None or self._make_room(ticket.tenant, grow=now >= grow_at):
                    return worker
            until = grow_at if self._turns.busy(ticket.tenant) and now < grow_at else deadline
            self._changed.wait(max(0.0, until - now))
            now = monotonic()
            if now >= deadline:
                raise Unavailable("All sandbox workers are busy", retry_after_s=1)

    def _has_idle(self, kind: Kind, tenant: int | None) -> bool:
        return any(worker.kind == kind and worker.tenant == tenant for _, worker in self._idle)

    def _prepare(self, kind: Kind) -> None:
        """Have a fresh worker started for whoever comes next, where there is room and none is ready."""
        with self._changed:
            if (
                self._has_idle(kind, None)
                or kind.name in self._preparing
                or self._size >= self._most
                or self._keeper is None
            ):
                return
            self._preparing.add(kind.name)
            self._size += 1
            wanted = self._keeper.start(kind)
        wanted.add_done_callback(lambda started: self._prepared(kind, started))

    def _prepared(self, kind: Kind, started: Future[Worker]) -> None:
        with self._changed:
            self._preparing.discard(kind.name)
            if started.exception() is None and not self._closed:
                self._idle.append((monotonic(), started.result()))
            else:
                self._size -= 1
            self._changed.notify_all()
        if started.exception() is None and self._closed:
            started.result().end()

    def _check_walls(self, worker: Worker) -> None:
        try:
            worker.check_walls()
        except Unguarded as error:
            with self._changed:
                self._unguarded[worker.kind.name] = (monotonic() + _UNGUARDED_S, error)
            raise

    def _pick(self, kind: Kind, tenant: int) -> Worker | None:
        """Take an idle worker of the tenant, or a fresh one, out of the idle ones."""
        for wanted in (tenant, None):
            # the one used last first: the others may grow old
            for entry in reversed(self._idle):
                worker = entry[1]
                if worker.kind == kind and worker.tenant == wanted:
                    self._idle.remove(entry)
                    if worker.ready:
                        return worker
                    self._drop(worker)
        return None

    def _make_room(self, tenant: int, *, grow: bool) -> bool:
        """Whether a worker may be started, after one that idles was ended where needed.

        A tenant that has one at work gets another after a short wait, and never at the cost of somebody else.
        """
        if self._turns.busy(tenant):
            return grow and self._size < self._most
        if self._size >= self._most and self._idle:
            self._drop(self._idle.pop(0)[1])
        return self._size < self._most

    def _drop(self, worker: Worker) -> None:
        worker.end()
        self._size -= 1

    def _give_back(self, worker: Worker, ticket: Ticket, *, keep: bool) -> None:
        keep = keep and worker.ready and not worker.spent
        if not keep:
            worker.end()
        with self._changed:
            if keep and not self._closed:
                self._idle.append((monotonic(), worker))
                self._turns.leave(ticket)
                self._changed.notify_all()
                return
        worker.end()
        self._forget(ticket)

    def _forget(self, ticket: Ticket) -> None:
        with self._changed:
            self._size -= 1
            self._turns.leave(ticket)
            self._changed.notify_all()

    def _started(self, kind: Kind) -> Worker:
        with self._changed:
            self._check_usable(kind)
            if self._keeper is None:
                self._keeper = Keeper(self._tidy, every_s=self._idle_s / 4)
            wanted = self._keeper.start(kind)
        try:
            return wanted.result()
        except OSError as error:
            raise Unavailable(
                f"A sandbox worker ({kind.name}) could not be started: {error.strerror}"
            ) from error

    def _tidy(self) -> bool:
        """End what has been idle for long; return whether any worker is left."""
        with self._changed:
            long_ago = monotonic() - self._idle_s
            old = [entry for entry in self._idle if entry[0] < long_ago and not self._stays(entry[1])]
            for entry in old:
                self._idle.remove(entry)
                self._drop(entry[1])
            return self._size > 0

    def _stays(self, worker: Worker) -> bool:
        return self._stays_ready and worker.tenant is None

    def _check_usable(self, kind: Kind) -> None:
        if self._closed or self._owner != os.getpid():
            raise Unavailable("The sandbox is closed")
        until, refusal = self._unguarded.get(kind.name, (0.0, None))
        if refusal is not None and monotonic() < until:
            raise Unguarded(refusal.message)
