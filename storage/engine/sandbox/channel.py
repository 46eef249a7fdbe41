"""The owner's two ends of a worker's frame pipes: frames within a deadline, and never over their size."""

import os
import select
from time import monotonic

from storage.engine.sandbox.inside.frames import HEADER_BYTES, FrameTooLarge

_LARGEST_READ = 1 << 20


class WorkerGone(Exception):
    """The process ended before or within a frame."""


class Channel:
    """Speaks with one worker; deadlines are readings of `time.monotonic`."""

    def __init__(self, read_fd: int, write_fd: int, max_bytes: int) -> None:
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        self._read_fd, self._write_fd, self._max_bytes = read_fd, write_fd, max_bytes
        self.closed = False

    @property
    def silent(self) -> bool:
        """Whether nothing can be read, and the other side is there."""
        return not _polled(self._read_fd, select.POLLIN, 0)

    def send(self, frame: bytes, deadline: float) -> None:
        """Write a frame.

        Raises:
            TimeoutError: the worker does not take it.
            WorkerGone: it has ended.
        """
        rest = memoryview(frame)
        while rest:
            try:
                rest = rest[os.write(self._write_fd, rest) :]
            except BlockingIOError:
                _wait(self._write_fd, select.POLLOUT, deadline)
            except BrokenPipeError:
                raise WorkerGone from None

    def receive(self, deadline: float) -> bytes:
        """Read the body of a frame.

        Raises:
            TimeoutError: it did not come, or not whole.
            WorkerGone: the worker has ended.
            FrameTooLarge: its header says more than is allowed.
        """
        size = int.from_bytes(self._read(HEADER_BYTES, deadline), "big")
        if size > self._max_bytes:
            raise FrameTooLarge(f"{size} bytes, {self._max_bytes} are allowed")
        return self._read(size, deadline)

    def close(self) -> None:
        self.closed = True
        os.close(self._read_fd)
        os.close(self._write_fd)

    def _read(self, size: int, deadline: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            _wait(self._read_fd, select.POLLIN, deadline)
            part = os.read(self._read_fd, min(size - len(parts), _LARGEST_READ))
            if not part:
                raise WorkerGone
            parts += part
        return bytes(parts)


def _wait(fd: int, event: int, deadline: float) -> None:
    left = deadline - monotonic()
    if left <= 0 or not _polled(fd, event, left * 1000):
        raise TimeoutError


def _polled(fd: int, event: int, timeout_ms: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(timeout_ms))
