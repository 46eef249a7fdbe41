"""The process that delivers webhooks: `python -m pipelines.deliveries`.

It looks into the outbox a few times a second and makes what is due its attempts, many at once. Killed at
any moment it loses nothing: a lease ends, and the attempt is made again.
"""

import asyncio
import logging
import os
import signal
from collections import Counter
from dataclasses import dataclass, field

import httpx2

from pipelines.attempts import attempt, open_transport
from storage.domain.errors import Unavailable
from storage.domain.targets import parse_target
from storage.domain.webhooks import Attempted, Claimed
from storage.outbox import claim_due, finish, release
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
    courier = _Courier(store, transport)
    try:
        while not stop.is_set():
            await courier.start_due()
            await courier.pause(stop)
    finally:
        await courier.end()
        await transport.aclose()


@dataclass(eq=False, slots=True)
class _Courier:
    store: Store
    transport: httpx2.AsyncHTTPTransport
    busy: Counter[str] = field(default_factory=Counter)
    tasks: dict[asyncio.Task[None], Claimed] = field(default_factory=dict)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    pause_s: float = LOOK_EVERY_S

    async def start_due(self) -> None:
        """Claim what is due and start its attempts."""
        limit = _MOST_ATTEMPTS - len(self.tasks)
        self.ended.clear()
        self.pause_s = LOOK_EVERY_S
        try:
            taken = await asyncio.to_thread(claim_due, self.store, busy=self.busy, limit=limit)
        except Unavailable as trouble:
            _log.warning("the outbox cannot be read or written: %s", trouble.message)
            self.pause_s = _AFTER_TROUBLE_S
            return
        for claimed in taken:
            origin = parse_target(claimed.url).origin
            self.busy[origin] += 1
            task = asyncio.create_task(self._make(claimed, origin))
            self.tasks[task] = claimed

    async def _make(self, claimed: Claimed, origin: str) -> None:
        try:
            attempted = await self._attempt(claimed)
            status = await asyncio.to_thread(finish, self.store, claimed, attempted)
            level = logging.DEBUG if attempted.delivered else logging.INFO
            _log.log(
                level,
                "delivery %d of webhook %d, attempt %d: %s, %s",
                *(claimed.id, claimed.webhook_id, claimed.attempt),
                *(attempted.status or "no answer", status or "taken over"),
            )
        except Unavailable as trouble:
            # its lease ends, and the attempt is made again
            _log.warning("delivery %d could not be noted: %s", claimed.id, trouble.message)
        finally:
            self.busy[origin] -= 1
            if not self.busy[origin]:
                del self.busy[origin]
            self.tasks.pop(asyncio.current_task())  # type: ignore[arg-type]
            self.ended.set()

    async def _attempt(self, claimed: Claimed) -> Attempted:
        try:
            return await attempt(self.transport, self.store.settings, claimed)
        except Exception as error:  # noqa: BLE001 - one delivery must not end the others; it is tried again
            _log.exception("delivery %d", claimed.id)
            return Attempted(error=f"internal error ({type(error).__name__})")

    async def pause(self, stop: asyncio.Event) -> None:
        """Wait until it is time to look again: an attempt that ended may have made another one due."""
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, self.ended)]
        await asyncio.wait(waits, timeout=self.pause_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def end(self) -> None:
        """Let attempts under way end, then break them off and give them back."""
        if self.tasks:
            await asyncio.wait(list(self.tasks), timeout=_STOP_WITHIN_S)
        left = dict(self.tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for claimed in left.values():
            await asyncio.to_thread(release, self.store, claimed)


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
    with opened(settings) as store:
        asyncio.run(_run(store))


if __name__ == "__main__":
    main()
