"""Writes of many threads committed together: each is durable when it returns, a failing one fails alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from storage.domain.errors import Invalid, Unavailable, invalid
from storage.engine.catalog import Connection
from storage.engine.group_commit import GroupCommit
from storage.engine.rows.log_patches import has_group, insert_group
from storage.store import Store


def count(store: Store) -> int:
    with store.logs.read() as connection:
        return int(connection.execute(sa.text("SELECT count(*) FROM log_groups")).scalar_one())


def test_those_who_come_together_share_commits_and_get_their_own_answers(store: Store) -> None:
    writes = GroupCommit(store.logs)
    commits: list[object] = []
    sa.event.listen(store.logs.engine, "commit", commits.append)
    started = threading.Barrier(16)

    def write(number: int) -> int:
        started.wait()
        return writes.run(lambda connection: insert_group(connection, 1, number))

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(write, range(16)))
    assert sorted(ids) == list(range(1, 17))
    assert count(store) == 16
    assert len(commits) < 16


def test_one_that_fails_is_undone_alone(store: Store) -> None:
    writes = GroupCommit(store.logs)
    started = threading.Barrier(8)

    def write(number: int) -> int | None:
        def work(connection: Connection) -> int:
            made = insert_group(connection, 1, number)
            if number % 2:
                raise invalid("x", "does not fit") if number == 1 else KeyError(number)
            return made

        started.wait()
        try:
            return writes.run(work)
        except (Invalid, KeyError):
            return None

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(write, range(8)))
    assert [one is None for one in made] == [False, True] * 4
    assert count(store) == 4


def test_a_commit_that_fails_is_told_to_all_of_its_group(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = GroupCommit(store.logs)

    def full(_: object) -> None:
        raise Unavailable("disk full")

    sa.event.listen(store.logs.engine, "commit", full)
    with pytest.raises(Unavailable):
        writes.run(lambda connection: insert_group(connection, 1, 0))
    sa.event.remove(store.logs.engine, "commit", full)
    made = writes.run(lambda connection: insert_group(connection, 1, 0))
    with store.logs.read() as connection:
        assert has_group(connection, 1, made)
    assert count(store) == 1
