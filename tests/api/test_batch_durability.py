"""Batches and kills: what was acknowledged is there whole, what is sent again is there once."""

import threading
import time

import httpx2
import pytest

from storage.settings import Settings
from storage.store import Store
from tests.api.test_log_durability import HEADERS, running, stored_names
from tests.logs import exchange

SIZE = 40


class BatchCallers:
    """Threads that send batches, each again with its key until it is answered."""

    def __init__(self, url: str, count: int) -> None:
        self.answered: dict[str, list[int]] = {}
        self.sent: set[str] = set()
        self.again = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(url, n)) for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _call(self, url: str, number: int) -> None:
        turn = 0
        with httpx2.Client(base_url=url, headers=HEADERS, timeout=5) as client:
            while not self._stop.is_set():
                name = f"{number}-{turn}"
                turn += 1
                self.sent.add(name)
                self._send(client, name)

    def _send(self, client: httpx2.Client, name: str) -> None:
        logs = [exchange(function_name=f"{name}/{at}") for at in range(SIZE)]
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                answer = client.post(
                    "/api/public/v2/requests/batch",
                    json={"requests": logs},
                    headers={"Idempotency-Key": name},
                )
            except httpx2.HTTPError:
                answer = None
            if answer is not None and answer.status_code == 201:
                self.answered[name] = answer.json()["ids"]
                return
            self.again += 1
            time.sleep(0.01)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.slow
def test_kill_9_loses_no_acknowledged_batch_halves_none_and_doubles_none(
    store: Store, settings: Settings
) -> None:
    with running(settings) as api:
        callers = BatchCallers(api.url, 4)
        try:
            for wanted in (10, 20):
                while len(callers.answered) < wanted:
                    time.sleep(0.005)
                seen = dict(callers.answered)
                api.kill()
                check(store, seen, callers.sent)
                api.restart()
        finally:
            callers.stop()
        assert callers.again
        assert set(callers.answered) == callers.sent
        check(store, callers.answered, callers.sent)


def check(store: Store, answered: dict[str, list[int]], sent: set[str]) -> None:
    """Compare the store with what was answered; `stored_names` fails when a log is there twice."""
    stored = stored_names(store)
    for name in set(sent):
        found = [stored.get(f"{name}/{at}") for at in range(SIZE)]
        if name in answered:
            assert found == answered[name], name
        else:
            assert found == [None] * SIZE or None not in found, f"half of {name} is there"
