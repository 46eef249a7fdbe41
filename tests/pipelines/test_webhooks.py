"""Webhooks seen from Dagster: what is overdue is armed and told of, and the asset counts."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from dagster import SkipReason, build_sensor_context, materialize

from pipelines.defs import webhooks as defs
from pipelines.resources import StoreResource, process_store
from storage.domain.keys import Principal
from storage.domain.webhooks import Attempted
from storage.engine.webhook_schema import deliveries
from storage.events import record_event
from storage.outbox import claim_due, finish
from storage.store import Store
from storage.webhooks import create_webhook


@pytest.fixture
def shared(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that sensors and assets open."""
    for name, text in store.settings.env().items():
        monkeypatch.setenv(name, text)
    process_store.cache_clear()
    yield process_store()
    process_store().close()
    process_store.cache_clear()


def happen(store: Store, who: Principal, count: int) -> None:
    create_webhook(store, who, url="https://93.184.215.14/", event_types=["report_finished"])
    with store.catalog.transaction() as connection:
        for number in range(count):
            record_event(
                connection,
                store,
                workspace_id=who.workspace_id,
                user_id=who.user_id,
                event_type="report_finished",
                object_key=f"report:{number % 2}",
                details={},
            )


def told() -> str:
    answer = defs.overdue_webhooks(build_sensor_context())
    assert isinstance(answer, SkipReason)
    return str(answer.skip_message)


def test_the_sensor_arms_what_nothing_would_make_due_and_tells_of_what_is_late(
    shared: Store, who: Principal
) -> None:
    assert told() == "Nothing is overdue."
    happen(shared, who, 3)
    with shared.catalog.transaction() as connection:
        connection.execute(deliveries.update().values(due_at=None))
    assert told() == "2 deliveries were made due again."
    long_ago = shared.now() - timedelta(minutes=5)
    with shared.catalog.transaction() as connection:
        connection.execute(deliveries.update().where(deliveries.c.id == 1).values(due_at=long_ago))
    assert told().startswith("1 deliveries are overdue")


def test_the_asset_counts_and_deletes_what_ended_long_ago(shared: Store, who: Principal) -> None:
    happen(replace(shared, now=lambda: store_now(shared) - timedelta(days=40)), who, 1)
    past = replace(shared, now=lambda: store_now(shared) - timedelta(days=39))
    finish(past, [(claimed, Attempted(200)) for claimed in claim_due(past, busy={}, limit=9)])
    happen(shared, who, 2)
    result = materialize([defs.webhook_deliveries], resources={"store": StoreResource()})
    (materialization,) = result.asset_materializations_for_node("webhook_deliveries")
    counts = {name: value.value for name, value in materialization.metadata.items()}
    # the webhook of the first event heard of the others as well
    assert counts == {"pending": 4, "delivered": 0, "dead": 0, "overdue": 0, "pruned": 1}


def store_now(store: Store) -> datetime:
    return store.now()
