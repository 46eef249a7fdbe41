"""A flush that finds much stays and looks again, so that the tail stays small under load."""

import os
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipelines import flush
from storage.domain.log_pace import FLUSH_STEPS_BACK
from storage.leases import held_lease
from storage.log_flush import flush_logs
from storage.log_pace import FLUSH_LEASE, needs_flush_now, staying, waiting_bytes
from storage.store import Store
from tests.logs import add_logs


@pytest.fixture
def busy(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose tail is large at a thousand bytes."""
    monkeypatch.setattr(flush, "PATIENCE_S", 0.5)
    return replace(store, settings=replace(store.settings, flush_bytes=2_600))


def counting(store: Store, monkeypatch: pytest.MonkeyPatch, comes: list[int]) -> list[int]:
    """Let more logs come after each flush, and note how many each one found."""
    found: list[int] = []

    def flushed(*args: Any) -> Any:
        found.append(waiting_bytes(store))
        result = flush_logs(store)
        if comes:
            add_logs(store, comes.pop(0))
        return result

    monkeypatch.setattr(flush, "flush_logs", flushed)
    return found


def test_under_load_one_run_flushes_again_until_it_is_calm(
    busy: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_logs(busy, 5)
    found = counting(busy, monkeypatch, [5, 6, 1])
    assert flush.run_flush(busy).rows == 16
    assert len(found) == 3
    assert waiting_bytes(busy) < 1_000


def test_a_small_tail_is_flushed_once(busy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_logs(busy, 1)
    found = counting(busy, monkeypatch, [9])
    assert flush.run_flush(after(busy, 20)).rows == 1
    assert len(found) == 1


def test_it_does_not_stay_for_ever(busy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush, "STAYS_S", 0.0)
    add_logs(busy, 5)
    found = counting(busy, monkeypatch, [9, 9, 9])
    flush.run_flush(busy)
    assert len(found) == 1


def test_a_flush_is_asked_for_when_much_waits_and_nobody_is_at_it(busy: Store) -> None:
    add_logs(busy, 1)
    assert not needs_flush_now(after(busy, 20))
    add_logs(busy, 5)
    assert needs_flush_now(after(busy, 20))
    assert flush.due_flush(busy).due
    with staying(busy):
        assert not needs_flush_now(busy)
    with held_lease(busy, FLUSH_LEASE):
        assert not needs_flush_now(busy)
        assert not flush.due_flush(busy).due
    with held_lease(busy, FLUSH_LEASE), staying(busy):
        # one that was killed holds them no longer than that
        assert needs_flush_now(after(busy, 61))
    flush.run_flush(busy)
    assert not needs_flush_now(busy)


def test_a_tail_that_will_be_large_when_a_run_has_begun_is_flushed(busy: Store) -> None:
    add_logs(busy, 1)
    assert needs_flush_now(busy)
    assert not needs_flush_now(after(busy, 20))


@pytest.mark.skipif(sys.platform != "linux", reason="priority is counted by thread on Linux alone")
def test_a_flush_steps_back_until_the_tail_is_half_full(busy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    seen: list[tuple[bool, int]] = []

    def flushed(store: Store) -> Any:
        half = waiting_bytes(store) >= store.settings.flush_bytes // 2
        seen.append((half, os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) - own))
        result = flush_logs(store)
        if len(seen) == 1:
            add_logs(store, 20)
        return result

    monkeypatch.setattr(flush, "flush_logs", flushed)
    add_logs(busy, 2)
    flush.run_flush(busy)
    assert seen == [(False, FLUSH_STEPS_BACK), (True, 0)]


def after(store: Store, seconds: float) -> Store:
    """The store some time later."""
    now = store.now
    return replace(store, now=lambda: now() + timedelta(seconds=seconds))
