"""Webhooks' events that happen and are delivered while a test looks on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pipelines.deliveries import deliver
from storage.deliveries import list_deliveries
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.webhooks import Delivery
from storage.events import record_event
from storage.store import Store
from storage.webhooks import create_webhook

LABELLED = "prompt_template_label_moved"


def subscribe(store: Store, who: Principal, url: str) -> tuple[int, str]:
    webhook, secret = create_webhook(store, who, url=url, event_types=[LABELLED])
    return webhook.id, secret


def happen(store: Store, who: Principal, number: int, object_key: str = "prompt:1") -> None:
    with store.catalog.transaction() as connection:
        record_event(
            connection,
            store,
            workspace_id=who.workspace_id,
            user_id=who.user_id,
            event_type=LABELLED,
            object_key=object_key,
            details={"n": number, "of": object_key, "name": "Grüße ☃"},
        )


def shown(store: Store, who: Principal, webhook_id: int) -> list[Delivery]:
    return list(list_deliveries(store, who, webhook_id, request=PageRequest(100)).items)


@asynccontextmanager
async def delivering(store: Store) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(deliver(store, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def until_ended(
    store: Store, who: Principal, webhook_id: int, within_s: float = 15.0
) -> list[Delivery]:
    async with asyncio.timeout(within_s):
        while True:
            found = shown(store, who, webhook_id)
            if all(delivery.ended_at for delivery in found):
                return found
            await asyncio.sleep(0.02)


async def until_tried(store: Store, who: Principal, webhook_id: int) -> Delivery:
    async with asyncio.timeout(15):
        while True:
            (delivery,) = shown(store, who, webhook_id)
            if delivery.last_attempt_at:
                return delivery
            await asyncio.sleep(0.02)
