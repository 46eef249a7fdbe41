"""When the pool forks: at once for runs that would wait, later for those that might come."""

import socket
from collections.abc import Iterable, Iterator
from typing import cast

import pytest

from pipelines.worker import pool as pools
from pipelines.worker.children import Child
from pipelines.worker.lanes import Job, Lanes, Limits
from pipelines.worker.ledger import Ledger
from pipelines.worker.pool import Pool
from pipelines.worker.wire import Lines


class Nursery:
    """Makes children without a process."""

    def __init__(self) -> None:
        self.others: list[socket.socket] = []

    def fork(self, _inherited: Iterable[socket.socket]) -> Child:
        ours, theirs = socket.socketpair()
        self.others.append(theirs)
        return Child(0, Lines(ours), ready=True)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    monkeypatch.setattr(pools, "Nursery", Nursery)
    made = Pool(Lanes(Limits.of(16, 2)), cast("Ledger", None), lambda _child: None, lambda _child: None)
    yield made
    for child in made.children:
        child.connection.close()
    for other in cast("Nursery", made._nursery).others:
        other.close()


def turn(pool: Pool, now: float, *new: str) -> int:
    """Let runs come, as the host's loop does; return how many processes there are then."""
    for run_id in new:
        pool.lanes.add(Job.of(run_id, "short", "1"))
    pool.deal()
    pool.fork(now, list)
    pool.deal()
    return len(pool.children)


def end(pool: Pool, run_id: str) -> None:
    child = next(child for child in pool.children if child.run_id == run_id)
    pool.lanes.drop(run_id)
    child.run_id = None


def test_two_wait_from_the_start(pool: Pool) -> None:
    assert turn(pool, 0.0) == 2


def test_a_row_of_short_runs_forks_nothing(pool: Pool) -> None:
    turn(pool, 0.0)
    for number in range(50):
        now = number * 0.15
        assert turn(pool, now, f"run-{number}") == 2
        end(pool, f"run-{number}")
        assert turn(pool, now + 0.1) == 2


def test_a_run_that_lasts_is_given_a_stand_in(pool: Pool) -> None:
    turn(pool, 0.0)
    assert turn(pool, 10.0, "long") == 2
    assert turn(pool, 10.9) == 2
    assert turn(pool, 11.0) == 3
    # whoever comes then finds one waiting, and another is made in turn
    assert turn(pool, 12.0, "next") == 3
    assert turn(pool, 13.5) == 4


def test_runs_that_would_wait_are_forked_for_at_once(pool: Pool) -> None:
    turn(pool, 0.0)
    assert turn(pool, 1.0, "a", "b") == 3
    assert sum(child.run_id is not None for child in pool.children) == 2
    assert turn(pool, 1.1, "c", "d") == 5
    assert sum(child.run_id is not None for child in pool.children) == 4
