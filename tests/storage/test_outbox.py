"""The outbox by a clock that the test moves: one attempt at a time, retries for a day, order per object."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from storage import outbox
from storage.deliveries import get_delivery, list_deliveries, redeliver
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.webhooks import (
    AT_ONCE,
    GIVE_UP_AFTER,
    LEASE,
    Attempted,
    Claimed,
    Delivery,
    DeliveryStatus,
)
from storage.engine.webhook_schema import deliveries as delivery_rows
from storage.engine.webhook_schema import events as event_rows
from storage.engine.webhook_schema import webhooks as webhook_rows
from storage.events import record_event
from storage.outbox import claim_due, count_outbox, get_next_due, prune_deliveries, rearm_overdue, release
from storage.store import Store
from storage.webhooks import create_webhook, delete_webhook, rotate_secret

WELL, ILL = Attempted(200, b"ok"), Attempted(500, b"no")
URL = "https://93.184.215.14/hook"


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def forward(self, **amount: float) -> None:
        self.at += timedelta(**amount)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(store: Store, clock: Clock) -> Store:
    return replace(store, now=clock)


def hook(store: Store, who: Principal, url: str = URL) -> int:
    return create_webhook(store, who, url=url, event_types=["report_finished"])[0].id


def happen(
    store: Store, who: Principal, object_key: str = "report:1", event_type: str = "report_finished"
) -> int:
    with store.catalog.transaction() as connection:
        return record_event(
            connection,
            store,
            workspace_id=who.workspace_id,
            user_id=who.user_id,
            event_type=event_type,
            object_key=object_key,
            details={},
        )


def claim(store: Store, limit: int = 100, **busy: int) -> list[Claimed]:
    return claim_due(store, busy=busy, limit=limit)


def finish(store: Store, claimed: Claimed, attempted: Attempted) -> DeliveryStatus | None:
    (status,) = outbox.finish(store, [(claimed, attempted)])
    return status


def shown(store: Store, who: Principal, webhook_id: int) -> list[Delivery]:
    return list(list_deliveries(store, who, webhook_id, request=PageRequest(100)).items)


def test_an_event_reaches_those_who_asked_for_it_in_its_workspace(
    store: Store, who: Principal, stranger: Principal
) -> None:
    first, second, foreign = hook(store, who), hook(store, who), hook(store, stranger)
    assert happen(store, who) == 2
    assert happen(store, who, event_type="prompt_template_version_created") == 0
    assert [len(shown(store, who, one)) for one in (first, second)] == [1, 1]
    assert shown(store, stranger, foreign) == []
    with store.catalog.read() as connection:
        assert len(connection.execute(event_rows.select()).all()) == 1


def test_an_event_whose_transaction_fails_never_happened(store: Store, who: Principal) -> None:
    one = hook(store, who)

    def change() -> None:
        with store.catalog.transaction() as connection:
            record_event(
                connection,
                store,
                workspace_id=who.workspace_id,
                user_id=who.user_id,
                event_type="report_finished",
                object_key="report:1",
                details={},
            )
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert shown(store, who, one) == []
    assert claim(store) == []


def test_one_attempt_has_a_delivery_until_its_lease_ends(store: Store, who: Principal, clock: Clock) -> None:
    one = hook(store, who)
    happen(store, who)
    (mine,) = claim(store)
    assert claim(store) == []
    clock.forward(seconds=LEASE.total_seconds())
    (theirs,) = claim(store)
    assert (theirs.id, theirs.attempt) == (mine.id, 2)
    assert finish(store, mine, WELL) is None
    assert shown(store, who, one)[0].status == "pending"
    assert finish(store, theirs, WELL) == "delivered"
    assert finish(store, theirs, ILL) is None


def test_a_released_attempt_is_due_at_once(store: Store, who: Principal) -> None:
    hook(store, who)
    happen(store, who)
    (mine,) = claim(store)
    release(store, [mine])
    (again,) = claim(store)
    assert again.id == mine.id
    release(store, [mine])
    assert claim(store) == []


def test_deliveries_of_an_object_go_one_after_the_other(store: Store, who: Principal, clock: Clock) -> None:
    one = hook(store, who)
    for key in ("report:1", "report:1", "report:2", "report:1"):
        happen(store, who, key)
    a1, b1 = claim(store)
    assert finish(store, a1, ILL) == "pending"
    assert finish(store, b1, WELL) == "delivered"
    assert claim(store) == []
    clock.forward(seconds=1)
    (a1,) = claim(store)
    finish(store, a1, WELL)
    (a2,) = claim(store)
    finish(store, a2, WELL)
    (a3,) = claim(store)
    finish(store, a3, WELL)
    ids = [delivery.id for delivery in shown(store, who, one)]
    assert [a1.id, a2.id, b1.id, a3.id] == ids


def test_a_target_gets_at_most_its_share_also_over_several_webhooks(store: Store, who: Principal) -> None:
    hook(store, who)
    hook(store, who)
    other = hook(store, who, "https://93.184.215.14:8443/")
    for number in range(AT_ONCE + 3):
        happen(store, who, f"report:{number}")
    taken = claim_due(store, busy={"https://93.184.215.14:443": 3}, limit=100)
    assert len([one for one in taken if one.webhook_id != other]) == AT_ONCE - 3
    assert len([one for one in taken if one.webhook_id == other]) == AT_ONCE
    assert claim_due(store, busy={"https://93.184.215.14:443": AT_ONCE}, limit=0) == []


def test_after_a_day_of_failures_a_delivery_is_dead_and_the_next_one_goes(
    store: Store, who: Principal, clock: Clock
) -> None:
    one = hook(store, who)
    happen(store, who)
    happen(store, who)
    status, tries = None, 0
    while status != "dead":
        (taken,) = claim(store)
        tries += 1
        status = finish(store, taken, ILL)
        clock.at = get_next_due(store) or clock.at
    assert 25 <= tries <= 50
    dead, following = shown(store, who, one)
    assert (dead.status, dead.error, dead.response_status) == ("dead", "answered 500", 500)
    assert dead.ended_at is not None
    assert dead.ended_at - dead.created_at <= GIVE_UP_AFTER
    clock.forward(hours=5)
    (late,) = claim(store)
    assert late.id == following.id, "what waited a day behind another is still tried once"
    assert finish(store, late, ILL) == "dead"
    counts = count_outbox(store)
    assert (counts.pending, counts.delivered, counts.dead, counts.overdue) == (0, 0, 2, 0)


def test_a_target_that_says_when_to_come_back_is_left_alone_until_then(
    store: Store, who: Principal, clock: Clock
) -> None:
    hook(store, who)
    happen(store, who)
    (mine,) = claim(store)
    finish(store, mine, Attempted(429, retry_after_s=120))
    clock.forward(seconds=119)
    assert claim(store) == []
    clock.forward(seconds=1)
    assert len(claim(store)) == 1


def test_redelivery_sends_the_same_event_as_a_new_delivery(store: Store, who: Principal) -> None:
    one = hook(store, who)
    happen(store, who)
    (mine,) = claim(store)
    with pytest.raises(Conflict, match="being tried"):
        redeliver(store, who, one, mine.id)
    finish(store, mine, WELL)
    again = redeliver(store, who, one, mine.id)
    assert (again.redelivery_of, again.status, again.event) == (mine.id, "pending", mine.event)
    (second,) = claim(store)
    assert second.id == again.id


def test_redelivery_of_one_that_waits_is_an_attempt_now(store: Store, who: Principal) -> None:
    one = hook(store, who)
    happen(store, who)
    happen(store, who)
    (mine,) = claim(store)
    finish(store, mine, ILL)
    assert claim(store) == []
    assert redeliver(store, who, one, mine.id).id == mine.id
    assert [taken.id for taken in claim(store)] == [mine.id]
    behind = shown(store, who, one)[1]
    with pytest.raises(Conflict, match="waits behind"):
        redeliver(store, who, one, behind.id)


def test_a_deleted_webhook_is_sent_nothing_more_and_forgets_its_secrets(store: Store, who: Principal) -> None:
    one = hook(store, who)
    rotate_secret(store, who, one, overlap=timedelta(hours=1))
    happen(store, who)
    (mine,) = claim(store)
    happen(store, who, "report:2")
    delete_webhook(store, who, one)
    assert claim(store) == []
    assert finish(store, mine, WELL) is None
    assert happen(store, who) == 0
    with pytest.raises(NotFound):
        get_delivery(store, who, one, mine.id)
    with store.catalog.read() as connection:
        (row,) = connection.execute(webhook_rows.select()).mappings()
        assert (row["secret"], row["previous_secret"]) == ("", None)
        assert {d.status for d in connection.execute(delivery_rows.select())} == {"dead"}


def test_what_nothing_would_make_due_is_armed_again(store: Store, who: Principal, clock: Clock) -> None:
    hook(store, who)
    happen(store, who)
    happen(store, who)
    assert rearm_overdue(store) == 0
    with store.catalog.transaction() as connection:
        connection.execute(delivery_rows.update().values(due_at=None))
    assert claim(store) == []
    assert rearm_overdue(store) == 1
    clock.forward(minutes=2)
    assert count_outbox(store).overdue == 1
    (first,) = claim(store)
    finish(store, first, WELL)
    assert len(claim(store)) == 1


def test_ended_deliveries_are_kept_for_their_days(store: Store, who: Principal, clock: Clock) -> None:
    one = hook(store, who)
    happen(store, who)
    (mine,) = claim(store)
    finish(store, mine, WELL)
    happen(store, who)
    clock.forward(days=store.settings.webhook_days, seconds=-1)
    assert prune_deliveries(store) == 0
    clock.forward(seconds=2)
    assert prune_deliveries(store) == 1
    assert [delivery.status for delivery in shown(store, who, one)] == ["pending"]
    with store.catalog.read() as connection:
        assert len(connection.execute(event_rows.select()).all()) == 1
