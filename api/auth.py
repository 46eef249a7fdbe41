"""Who calls: the key of the header, looked up at most once a second."""

import time
from collections.abc import Callable
from hashlib import sha256

from starlette.concurrency import run_in_threadpool

from storage.domain.errors import Unauthorized
from storage.domain.keys import KeyFacts, Principal
from storage.store import Store
from storage.workspaces import find_key

CACHE_S = 1.0
_MOST_KEYS = 10_000


class Authenticator:
    """Finds the principal of a key; what it remembers counts for at most a second, so revocation holds."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._seen: dict[bytes, tuple[float, KeyFacts | None]] = {}

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
        if seen is None or self._monotonic() - seen[0] >= CACHE_S:
            asked_at = self._monotonic()
            seen = (asked_at, await run_in_threadpool(find_key, self._store, key))
            self._remember(digest, seen)
        facts = seen[1]
        if facts is None or not facts.counts_at(self._store.now()):
            raise Unauthorized("Invalid API key")
        return facts.principal

    def _remember(self, digest: bytes, seen: tuple[float, KeyFacts | None]) -> None:
        if len(self._seen) >= _MOST_KEYS:
            self._seen.clear()
        self._seen[digest] = seen
