"""The worker host: one thread that listens to launchers and children. One thread, so that forking is safe."""

import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.worker.children import Child
from pipelines.worker.lanes import Job, Lanes, Limits
from pipelines.worker.ledger import Ledger
from pipelines.worker.pool import Pool
from pipelines.worker.wire import Lines, pack

_log = logging.getLogger("promptlake.worker")

_RECONCILE_S = 2.0
_BUSY_PAUSE_S = 0.25
_STOP_GRACE_S = 4.0


class Host:
    """Serves one socket until SIGTERM, then gives its runs a few seconds and leaves none behind."""

    def __init__(self, path: str, limits: Limits, ledger: Ledger) -> None:
        self._path = path
        self._selector = selectors.DefaultSelector()
        self._pool = Pool(Lanes(limits), ledger, self._watch_child, self._unwatch_child)
        self._sockets: set[socket.socket] = set()
        self._stop_at: float | None = None
        self._next_look_at = 0.0

    def serve(self) -> None:
        """Listen, deal and settle until stopped; every run of a process left over is then ended."""
        self._listen()
        while self._stop_at is None or (self._pool.children and time.monotonic() < self._stop_at):
            for key, _ in self._selector.select(self._pause_s()):
                key.data()
            self._tick(time.monotonic())
        for child in list(self._pool.children):
            child.kill_at = 0.0
            child.kill_if_due(time.monotonic())
            while child in self._pool.children:
                self._pool.hear(child)
        Path(self._path).unlink(missing_ok=True)

    def _tick(self, now: float) -> None:
        for child in self._pool.children:
            child.kill_if_due(now)
        if now >= self._next_look_at:
            self._next_look_at = now + _RECONCILE_S
            self._pool.reconcile()
        if self._stop_at is None:
            self._pool.deal()
            self._pool.fork(now, lambda: list(self._sockets))
            self._pool.trim(now)

    def _pause_s(self) -> float:
        if any(child.kill_at is not None for child in self._pool.children):
            return _BUSY_PAUSE_S
        return max(0.0, self._next_look_at - time.monotonic())

    def _stop(self) -> None:
        if self._stop_at is not None:
            return
        self._stop_at = time.monotonic() + _STOP_GRACE_S
        for child in self._pool.children:
            if child.run_id is not None:
                child.interrupt(_STOP_GRACE_S)
            child.retire()

    def _listen(self) -> None:
        Path(self._path).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self._path)
        Path(self._path).chmod(0o600)
        listener.listen(128)
        self._watch(listener, lambda: self._accept(listener))
        wake, signalled = socket.socketpair()
        signalled.setblocking(False)
        self._sockets.add(signalled)
        self._watch(wake, lambda: self._hear_signals(wake))
        signal.set_wakeup_fd(signalled.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def _hear_signals(self, wake: socket.socket) -> None:
        if {signal.SIGTERM, signal.SIGINT} & set(wake.recv(4096)):
            self._stop()

    def _watch(self, connection: socket.socket, handler: Callable[[], Any]) -> None:
        connection.setblocking(False)
        self._sockets.add(connection)
        self._selector.register(connection, selectors.EVENT_READ, handler)

    def _unwatch(self, connection: socket.socket) -> None:
        self._sockets.discard(connection)
        self._selector.unregister(connection)

    def _watch_child(self, child: Child) -> None:
        self._watch(child.connection, lambda: self._pool.hear(child))

    def _unwatch_child(self, child: Child) -> None:
        self._unwatch(child.connection)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError as error:
            _log.warning("a caller could not be accepted: %s", error)
            return
        lines = Lines(connection)
        self._watch(connection, lambda: self._hear(lines))

    def _hear(self, lines: Lines) -> None:
        messages = lines.receive()
        for message in messages or []:
            try:
                lines.connection.sendall(pack(self._answer(message)))
            except OSError:
                _log.warning("a caller left before its answer to %s", message.get("verb"))
        if messages is None:
            self._unwatch(lines.connection)
            lines.connection.close()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        match message:
            case {"verb": "launch"} if self._stop_at is not None:
                return {"ok": False, "error": "the worker host is stopping"}
            case {"verb": "launch", "run_id": str(run_id), "lane": str(lane), "tenant": str(tenant)}:
                self._pool.lanes.add(Job.of(run_id, lane, tenant))
                return {"ok": True}
            case {"verb": "terminate", "run_id": str(run_id)}:
                return {"ok": self._pool.interrupt(run_id)}
            case {"verb": "health", "run_id": str(run_id)}:
                return self._health(run_id)
            case {"verb": "ping"}:
                return {"ok": self._stop_at is None, **self._counts()}
        return {"ok": False, "error": "not understood"}

    def _health(self, run_id: str) -> dict[str, Any]:
        if self._pool.lanes.knows(run_id):
            return {"status": "RUNNING"}
        cause = self._pool.cause(run_id)
        return {"status": "NOT_FOUND" if cause is None else "FAILED", "cause": cause}

    def _counts(self) -> dict[str, int]:
        children = self._pool.children
        return {
            "processes": len(children),
            "idle": sum(child.idle for child in children),
            "running": sum(child.run_id is not None for child in children),
            "waiting": len(self._pool.lanes.waiting()),
        }
