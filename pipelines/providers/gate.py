"""What all runs of a machine share of a provider: how many calls at once, how many a minute, and pauses.

It lies in small files below the home folder, under locks of the kernel, which a killed process gives back.
Machines that share a store do not share this: each has the whole limit.
"""

import asyncio
import fcntl
import os
import random
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

_MOMENT = struct.Struct("<d")
# byte ranges of a model's file: the moment of the next call, then a byte a place
_FIRST_PLACE = 64
_LOOK_EVERY_S = 0.02
_BURST_S = 1.0


class _Shared:
    """A small file: a moment, then a byte a place. Between processes the kernel's locks guard it.

    These are the whole process's, and closing the file gives all of them back: so a process opens it once,
    and its threads are kept apart here.
    """

    _open: ClassVar[dict[Path, "_Shared"]] = {}
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._path, self.users = path, 0
        self._fd = _open(path)
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    @classmethod
    def of(cls, path: Path) -> "_Shared":
        """Return the process's one of a path; `close` it when done."""
        with cls._opening:
            if path not in cls._open:
                cls._open[path] = cls(path)
            found = cls._open[path]
            found.users += 1
            return found

    def close(self) -> None:
        with self._opening:
            self.users -= 1
            if not self.users:
                del self._open[self._path]
                os.close(self._fd)

    def moment(self) -> float:
        held = os.pread(self._fd, _MOMENT.size, 0)
        return float(_MOMENT.unpack(held)[0]) if len(held) == _MOMENT.size else 0.0

    def change(self, changed: Callable[[float], float]) -> None:
        """Replace the moment by what is made of it, while nobody else does."""
        with self._lock:
            fcntl.lockf(self._fd, fcntl.LOCK_EX, _MOMENT.size, 0)
            try:
                os.pwrite(self._fd, _MOMENT.pack(changed(self.moment())), 0)
            finally:
                fcntl.lockf(self._fd, fcntl.LOCK_UN, _MOMENT.size, 0)

    def take(self, place: int) -> bool:
        """Take a place; False while anybody has it."""
        with self._lock:
            if place in self._taken:
                return False
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _FIRST_PLACE + place)
            except OSError:
                return False
            self._taken.add(place)
            return True

    def free(self, place: int) -> None:
        with self._lock:
            self._taken.discard(place)
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _FIRST_PLACE + place)


class Pause:
    """Until when nobody calls a provider."""

    def __init__(self, folder: Path, provider: str) -> None:
        self._file = _Shared.of(folder / f"{_mark(provider)}.pause")

    def left_s(self) -> float:
        """Seconds until the pause ends; 0 when there is none."""
        return max(0.0, self._file.moment() - time.time())

    def extend(self, seconds: float) -> None:
        """Let everybody wait, unless they wait longer already."""
        until = time.time() + seconds
        self._file.change(lambda known: max(known, until))

    def close(self) -> None:
        self._file.close()


class Gate:
    """Lets calls of one model through: `places` at once, `per_minute` (0: any number) in the long run."""

    def __init__(self, folder: Path, provider: str, model: str, *, places: int, per_minute: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.places = places
        self.pause = Pause(folder, provider)
        self._file = _Shared.of(folder / f"{_mark(provider, model)}.calls")
        self._spacing_s = 60.0 / per_minute if per_minute else 0.0
        self._free = list(range(places))
        random.shuffle(self._free)
        self._own = asyncio.Semaphore(places)
        self._looking = asyncio.Lock()

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Hold a place for the time of a call."""
        async with self._own:
            await self._unpaused()
            if self._spacing_s:
                await asyncio.sleep(self._turn_s())
            place = await self._take()
            try:
                yield
            finally:
                self._file.free(place)
                self._free.append(place)

    async def _unpaused(self) -> None:
        while left_s := self.pause.left_s():  # noqa: ASYNC110  # other processes extend it
            # not all at one moment
            await asyncio.sleep(left_s + random.random() * min(1.0, left_s))  # noqa: S311  # no secret

    async def _take(self) -> int:
        place = self._try_all()
        if place is not None:
            return place
        async with self._looking:
            while (place := self._try_all()) is None:  # noqa: ASYNC110  # other processes free one
                await asyncio.sleep(_LOOK_EVERY_S * (0.5 + random.random()))  # noqa: S311  # no secret
        return place

    def _try_all(self) -> int | None:
        for at in range(len(self._free) - 1, -1, -1):
            place = self._free[at]
            if self._file.take(place):
                del self._free[at]
                return place
        return None

    def _turn_s(self) -> float:
        """Take the next turn of the rate and return how far off it is."""
        now = time.time()
        turns: list[float] = []

        def taken(known: float) -> float:
            turns.append(max(known, now - _BURST_S))
            return turns[0] + self._spacing_s

        self._file.change(taken)
        return max(0.0, turns[0] - now)

    def close(self) -> None:
        self.pause.close()
        self._file.close()


class Claims:
    """Who computes what: a key is claimed by one process at a time, and let go when that process ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._fd = _open(folder / "claims")
        self._held: set[int] = set()
        self._lock = threading.Lock()

    def claim(self, key: bytes) -> bool:
        """Claim a key; False while another process, or another user of this one, has it."""
        at = _place(key)
        with self._lock:
            if at in self._held:
                return False
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
            except OSError:
                return False
            self._held.add(at)
            return True

    def release(self, key: bytes) -> None:
        at = _place(key)
        with self._lock:
            if at in self._held:
                self._held.remove(at)
                fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, at)

    def close(self) -> None:
        os.close(self._fd)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _mark(*names: str) -> str:
    return sha256("\0".join(names).encode()).hexdigest()[:24]


def _place(key: bytes) -> int:
    return int.from_bytes(key[:7], "big")
