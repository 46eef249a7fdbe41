import pytest

from storage.domain.keys import Principal
from storage.domain.operations import Operation
from storage.operations import (
    ClaimRefused,
    claim,
    enqueue,
    fail,
    get_operation,
    list_waiting,
    raise_attempt,
    set_progress,
    succeed,
)
from storage.store import Store
from storage.workspaces import find_key
from tests.conftest import KEY


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture
def queued(store: Store, who: Principal) -> Operation:
    with store.catalog.transaction() as connection:
        return enqueue(
            connection,
            store,
            who,
            operation_id=None,
            kind="import_file",
            lane="short",
            request_hash="0",
            spec={},
        )


def test_exactly_one_run_of_an_attempt_gets_the_operation(store: Store, queued: Operation) -> None:
    assert [o.no for o in list_waiting(store)] == [queued.no]
    assert claim(store, queued.no, 1, "run-a").run_id == "run-a"
    with pytest.raises(ClaimRefused):
        claim(store, queued.no, 1, "run-b")
    assert list_waiting(store) == []


def test_a_run_that_lost_its_operation_publishes_nothing(store: Store, queued: Operation) -> None:
    claimed = claim(store, queued.no, 1, "run-a")
    assert fail(store, queued.no, 1, "cancelled")
    assert not set_progress(store, claimed, 50, "half")
    with pytest.raises(ClaimRefused), store.catalog.transaction() as connection:
        succeed(connection, store, claimed, message="done", rows_added=3)
    ended = get_operation(store, queued.no)
    assert (ended.status, ended.error_message, ended.rows_added) == ("failed", "cancelled", 0)
    assert not fail(store, queued.no, 1, "again")


def test_a_later_attempt_shuts_the_earlier_run_out(store: Store, queued: Operation) -> None:
    claimed = claim(store, queued.no, 1, "run-a")
    assert raise_attempt(store, queued.no, 1)
    assert not set_progress(store, claimed, 10, "late")
    with pytest.raises(ClaimRefused):
        claim(store, queued.no, 1, "run-a")
    again = claim(store, queued.no, 2, "run-b")
    with store.catalog.transaction() as connection:
        succeed(connection, store, again, message="done", rows_added=3)
    assert get_operation(store, queued.no).status == "succeeded"
