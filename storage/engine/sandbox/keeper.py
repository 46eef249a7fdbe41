"""The thread that starts workers, and from time to time lets the pool look for idle ones.

It lives as long as its pool: the kernel ends a worker together with the thread that started it, so a thread
that serves requests and may go at any moment must not start one.
"""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread

from storage.engine.sandbox.kinds import Kind
from storage.engine.sandbox.process import Worker

_Job = tuple[Kind, Future[Worker]] | None


class Keeper:
    def __init__(self, tidy: Callable[[], bool], every_s: float) -> None:
        """`tidy` is called every `every_s` seconds while it says that workers are left, else never."""
        self._tidy, self._every_s = tidy, every_s
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._thread = Thread(target=self._run, name="sandbox keeper", daemon=True)
        self._thread.start()

    def start(self, kind: Kind) -> Future[Worker]:
        """Have a worker started; the process exists when the future is done, its walls come later."""
        wanted: Future[Worker] = Future()
        self._jobs.put((kind, wanted))
        return wanted

    def stop(self) -> None:
        """Start what was asked for, then end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        left = True
        while True:
            try:
                job = self._jobs.get(timeout=self._every_s if left else None)
            except Empty:
                left = self._tidy()
                continue
            if job is None:
                return
            left = True
            kind, wanted = job
            try:
                wanted.set_result(Worker(kind))
            except Exception as error:  # noqa: BLE001  handed to the one that waits for it
                wanted.set_exception(error)
