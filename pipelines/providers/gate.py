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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

_MOMENT = struct.Struct("<d")
# byte ranges of a model's file: the moment of the next call, then a byte a place
_FIRST_PLACE = 64
_LOOK_EVERY_S = 0.02
_BURST_S = 1.0


class Pause:
    """Until when nobody calls a provider."""

    def __init__(self, folder: Path, provider: str) -> None:
        self._fd = _open(folder / f"{_mark(provider)}.pause")

    def left_s(self) -> float:
        """Seconds until the pause ends; 0 when there is none."""
        return max(0.0, _read(self._fd) - time.time())

    def extend(self, seconds: float) -> None:
        """Let everybody wait, unless they wait longer already."""
        with _locked(self._fd):
            _write(self._fd, max(_read(self._fd), time.time() + seconds))

    def close(self) -> None:
        os.close(self._fd)


class Gate:
    """Lets calls of one model through: `places` at once, `per_minute` (0: any number) in the long run."""

    def __init__(self, folder: Path, provider: str, model: str, *, places: int, per_minute: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.places = places
        self.pause = Pause(folder, provider)
        self._fd = _open(folder / f"{_mark(provider, model)}.calls")
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
                fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _FIRST_PLACE + place)
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
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _FIRST_PLACE + place)
            except OSError:
                continue
            del self._free[at]
            return place
        return None

    def _turn_s(self) -> float:
        """Take the next turn of the rate and return how far off it is."""
        with _locked(self._fd):
            now = time.time()
            turn = max(_read(self._fd), now - _BURST_S)
            _write(self._fd, turn + self._spacing_s)
        return max(0.0, turn - now)

    def close(self) -> None:
        self.pause.close()
        os.close(self._fd)


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


class _locked:  # noqa: N801  # reads as the statement it is
    """The header of a file is ours for a block."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_EX, _MOMENT.size, 0)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN, _MOMENT.size, 0)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _read(fd: int) -> float:
    held = os.pread(fd, _MOMENT.size, 0)
    return float(_MOMENT.unpack(held)[0]) if len(held) == _MOMENT.size else 0.0


def _write(fd: int, moment: float) -> None:
    os.pwrite(fd, _MOMENT.pack(moment), 0)


def _mark(*names: str) -> str:
    return sha256("\0".join(names).encode()).hexdigest()[:24]


def _place(key: bytes) -> int:
    return int.from_bytes(key[:7], "big")
