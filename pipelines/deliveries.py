"""The process that delivers webhooks: `python -m pipelines.deliveries`.

It looks into the outbox a few times a second and makes what is due its attempts, many at once. Killed at
any moment it loses nothing: a lease ends, and the attempt is made again.
"""

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import httpx2

from pipelines.attempts import attempt, open_transport
from storage.domain.errors import Unavailable
from storage.domain.targets import origin_of
from storage.domain.webhooks import Attempted, Claimed
from storage.outbox import claim_due, finish, get_next_due, release, watching
from storage.settings import Settings
from storage.store import Store, opened

_log = logging.getLogger("promptlake.deliveries")

LOOK_EVERY_S = 0.2
_AFTER_TROUBLE_S = 2.0
_MOST_ATTEMPTS = 512
_STOP_WITHIN_S = 3.0


async def deliver(store: Store, stop: asyncio.Event) -> None:
    """Deliver until told to stop; then attempts under way get a moment, and are given back after it."""
    transport = open_transport(_MOST_ATTEMPTS)
    with watching(store) as changed:
        courier = _Courier(store, transport, changed)
        told = asyncio.create_task(stop.wait())
        told.add_done_callback(lambda _: courier.news.set())
        try:
            while not stop.is_set():
                pause_s = await courier.turn()
                await courier.pause(pause_s)
        finally:
            told.cancel()
            await courier.end()
            await transport.aclose()


@dataclass(eq=False, slots=True)
class _Courier:
    store: Store
    transport: httpx2.AsyncHTTPTransport
    changed: Callable[[], bool]
    next_due: datetime | None = None
    busy: Counter[str] = field(default_factory=Counter)
    tasks: dict[asyncio.Task[None], Claimed] = field(default_factory=dict)
    ended: list[tuple[Claimed, Attempted]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def turn(self) -> float:
        """Note the attempts that ended, then start those that are due; return how long to pause (seconds).

        All that ended since the last turn shares a transaction, and so does all that starts.
        """
        self.news.clear()
        # what is committed after this look is seen by the next one
        changed = self.changed()
        due = self.next_due is not None and self.next_due <= self.store.now()
        if not (changed or due or self.ended):
            return LOOK_EVERY_S
        try:
            await self._note()
            limit = _MOST_ATTEMPTS - len(self.tasks)
            taken = await asyncio.to_thread(claim_due, self.store, busy=self.busy, limit=limit)
            self.next_due = await asyncio.to_thread(get_next_due, self.store)
        except Unavailable as trouble:
            _log.warning("the outbox cannot be read or written: %s", trouble.message)
            self.next_due = self.store.now()
            return _AFTER_TROUBLE_S
        for claimed in taken:
            origin = origin_of(claimed.url)
            self.busy[origin] += 1
            task = asyncio.create_task(self._attempt(claimed, origin))
            self.tasks[task] = claimed
            task.add_done_callback(self.tasks.pop)
        return LOOK_EVERY_S

    async def _note(self) -> None:
        ended, self.ended = self.ended, []
        if not ended:
            return
        try:
            statuses = await asyncio.to_thread(finish, self.store, ended)
        except Unavailable:
            self.ended = ended + self.ended
            raise
        for (claimed, attempted), status in zip(ended, statuses, strict=True):
            level = logging.DEBUG if attempted.delivered else logging.INFO
            ids = (claimed.id, claimed.webhook_id, claimed.attempt)
            outcome = (attempted.status or "no answer", status or "taken over")
            _log.log(level, "delivery %d of webhook %d, attempt %d: %s, %s", *ids, *outcome)

    async def _attempt(self, claimed: Claimed, origin: str) -> None:
        try:
            attempted = await attempt(self.transport, self.store.settings, claimed)
        except Exception as error:  # noqa: BLE001 - one delivery must not end the others; it is tried again
            _log.exception("delivery %d", claimed.id)
            attempted = Attempted(error=f"internal error ({type(error).__name__})")
        finally:
            self.busy[origin] -= 1
            if not self.busy[origin]:
                del self.busy[origin]
        self.ended.append((claimed, attempted))
        self.news.set()

    async def pause(self, pause_s: float) -> None:
        """Wait until it is time to look again, or there is something to note."""
        try:
            async with asyncio.timeout(pause_s):
                await self.news.wait()
        except TimeoutError:
            return

    async def end(self) -> None:
        """Let attempts under way end, then break them off and give them back."""
        if self.tasks:
            await asyncio.wait(list(self.tasks), timeout=_STOP_WITHIN_S)
        left = dict(self.tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        try:
            await self._note()
            await asyncio.to_thread(release, self.store, list(left.values()))
        except Unavailable as trouble:
            # their leases end, and they are tried again
            _log.warning("%d attempts could not be noted: %s", len(self.ended) + len(left), trouble.message)


async def _run(store: Store) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await deliver(store, stop)


def main() -> None:
    """Deliver the webhooks of the environment's home folder until SIGTERM."""
    settings = Settings.from_env(os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # other libraries' lines name URLs, which may hold what is nobody else's
    logging.getLogger("httpcore2").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    # what a power failure undoes here is an attempt that is made again
    with opened(settings, durable=False) as store:
        asyncio.run(_run(store))


if __name__ == "__main__":
    main()
