"""Who calls: the key of the header, looked up at most once a second."""

import asyncio
import time
from collections.abc import Callable
from hashlib import sha256

from starlette.concurrency import run_in_threadpool

from storage.domain.errors import Unauthorized
from storage.domain.keys import KeyFacts, Principal
from storage.store import Store
from storage.workspaces import find_key

CACHE_S = 1.0
# A key in steady use is looked up again before it must be, so that no call waits for it.
_REFRESH_S = 0.5
_MOST_KEYS = 10_000

_Seen = tuple[float, KeyFacts | None]


class Authenticator:
    """Finds the principal of a key; what it remembers counts for at most a second, so revocation holds."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._seen: dict[bytes, _Seen] = {}
        self._asking: dict[bytes, asyncio.Task[_Seen]] = {}

    async def principal(self, key: str | None) -> Principal:
        """Return whose key it is.

        Raises:
            Unauthorized: it is missing, unknown, expired or revoked.
        """
        if not key:
            raise Unauthorized("Missing API key: send it in the header X-API-KEY")
        if not key.isascii():
            raise Unauthorized("Invalid API key")
        digest = sha256(key.encode()).digest()
        seen = self._seen.get(digest)
        age_s = CACHE_S if seen is None else self._monotonic() - seen[0]
        if seen is None or age_s >= CACHE_S:
            seen = await asyncio.shield(self._ask(digest, key))
        elif age_s >= _REFRESH_S:
            self._ask(digest, key)
        facts = seen[1]
        if facts is None or not facts.counts_at(self._store.now()):
            raise Unauthorized("Invalid API key")
        return facts.principal

    def _ask(self, digest: bytes, key: str) -> asyncio.Task[_Seen]:
        """Look a key up, once for all who ask meanwhile."""
        asking = self._asking.get(digest)
        if asking is None:
            asking = self._asking[digest] = asyncio.ensure_future(self._look_up(digest, key))
            asking.add_done_callback(lambda done: self._forget(digest, done))
        return asking

    async def _look_up(self, digest: bytes, key: str) -> _Seen:
        asked_at = self._monotonic()
        seen = (asked_at, await run_in_threadpool(find_key, self._store, key))
        self._remember(digest, seen)
        return seen

    def _forget(self, digest: bytes, done: asyncio.Task[_Seen]) -> None:
        self._asking.pop(digest, None)
        if not done.cancelled():
            done.exception()  # whoever awaits it raises it; a refresh that failed is asked again

    def _remember(self, digest: bytes, seen: _Seen) -> None:
        if len(self._seen) >= _MOST_KEYS:
            self._seen.clear()
        self._seen[digest] = seen
