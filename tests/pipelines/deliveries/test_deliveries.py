"""Deliveries to a real receiver on loopback: signed, in order, at least once, whatever happens here."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest

from storage import outbox
from storage.deliveries import get_delivery, redeliver
from storage.domain.errors import Unavailable
from storage.domain.keys import Principal
from storage.settings import Settings
from storage.store import Store
from storage.webhooks import rotate_secret
from tests.delivering import delivering, happen, shown, subscribe, until_ended
from tests.receiving import Arrival, Receiver, answer, receiving


def test_a_delivery_is_signed_over_its_exact_bytes_and_arrives_within_a_second(
    store: Store, who: Principal
) -> None:
    async def scenario() -> None:
        async with receiving() as receiver, delivering(store):
            hook, secret = subscribe(store, who, receiver.url)
            took_s = []
            for number in (1, 2, 3):
                await asyncio.sleep(0.2)
                started = time.monotonic()
                happen(store, who, number)
                arrival = (await receiver.until(number))[-1]
                took_s.append(time.monotonic() - started)
            # a busy machine may hold one up
            assert min(took_s) < 1.0
            assert arrival.signed_by(secret)
            assert arrival.headers["x-promptlayer-signature"] == arrival.headers["x-webhook-signature"]
            assert "x-webhook-signature-previous" not in arrival.headers
            assert sorted(arrival.event) == ["details", "event_type", "timestamp", "user_id", "workspace_id"]
            assert arrival.event["details"]["name"] == "Grüße ☃"
            delivery = (await until_ended(store, who, hook))[0]
            assert (delivery.status, delivery.attempts, delivery.response_status) == ("delivered", 1, 200)
            assert get_delivery(store, who, hook, delivery.id).response_body == b"thanks"

    asyncio.run(scenario())


def test_events_of_one_object_arrive_in_order_though_attempts_fail(store: Store, who: Principal) -> None:
    refused: dict[str, int] = {}

    async def moody(_receiver: Receiver, arrival: Arrival, writer: asyncio.StreamWriter) -> None:
        of, n = arrival.event["details"]["of"], arrival.event["details"]["n"]
        refused[f"{of}/{n}"] = refused.get(f"{of}/{n}", 0) + 1
        first_time_of_third = n % 3 == 0 and refused[f"{of}/{n}"] == 1
        answer(writer, 500 if first_time_of_third else 204)

    async def scenario() -> None:
        async with receiving(moody) as receiver:
            hook, _ = subscribe(store, who, receiver.url)
            for number in range(8):
                for key in ("prompt:1", "prompt:2", "sheet:x"):
                    happen(store, who, number, key)
            async with delivering(store):
                found = await until_ended(store, who, hook)
            assert {delivery.status for delivery in found} == {"delivered"}
            for key in ("prompt:1", "prompt:2", "sheet:x"):
                numbers = [
                    a.event["details"]["n"] for a in receiver.arrivals if a.event["details"]["of"] == key
                ]
                assert numbers == [0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7]

    asyncio.run(scenario())


def test_both_secrets_sign_until_the_overlap_ends(store: Store, who: Principal) -> None:
    async def scenario() -> None:
        async with receiving() as receiver, delivering(store):
            hook, old = subscribe(store, who, receiver.url)
            _, new = rotate_secret(store, who, hook, overlap=timedelta(hours=1))
            happen(store, who, 1)
            (first,) = await receiver.until(1)
            assert first.signed_by(new)
            assert first.signed_by(old, "x-webhook-signature-previous")
            _, newest = rotate_secret(store, who, hook, overlap=timedelta(0))
            happen(store, who, 2)
            _, second = await receiver.until(2)
            assert second.signed_by(newest)
            assert "x-webhook-signature-previous" not in second.headers

    asyncio.run(scenario())


def test_a_full_disk_for_a_while_loses_and_repeats_nothing(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.deliveries._AFTER_TROUBLE_S", 0.05)
    finish, failures = outbox.finish, iter([True] * 5)

    def full(*arguments: Any) -> Any:
        if next(failures, False):
            raise Unavailable("The catalog cannot be written now (disk full or busy).")
        return finish(*arguments)

    monkeypatch.setattr("pipelines.deliveries.finish", full)

    async def scenario() -> None:
        async with receiving() as receiver, delivering(store):
            hook, _ = subscribe(store, who, receiver.url)
            happen(store, who, 1)
            (delivery,) = await until_ended(store, who, hook)
            assert (delivery.status, delivery.attempts) == ("delivered", 1)
            assert len(receiver.arrivals) == 1
            assert next(failures, False) is False

    asyncio.run(scenario())


def test_what_was_given_up_is_sent_again_by_hand(store: Store, who: Principal) -> None:
    async def scenario() -> None:
        async with receiving() as receiver, delivering(store):
            hook, _ = subscribe(store, who, receiver.url)
            happen(store, who, 1)
            (first,) = await until_ended(store, who, hook)
            again = redeliver(store, who, hook, first.id)
            assert again.redelivery_of == first.id
            one, two = await receiver.until(2)
            assert one.body == two.body
            assert one.headers["x-webhook-event-id"] == two.headers["x-webhook-event-id"]

    asyncio.run(scenario())


def test_attempts_under_way_when_the_process_stops_are_given_back(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.deliveries._STOP_WITHIN_S", 0.1)

    async def hang(_receiver: Receiver, arrival: Arrival, _writer: asyncio.StreamWriter) -> None:
        await arrival.given_up()

    async def scenario() -> None:
        async with receiving(hang) as receiver:
            hook, _ = subscribe(store, who, receiver.url)
            happen(store, who, 1)
            async with delivering(store):
                await receiver.until(1)
            (delivery,) = shown(store, who, hook)
            assert delivery.claimed_at is None
            assert delivery.due_at is not None
            assert delivery.due_at <= store.now()

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_killed_process_loses_nothing(store: Store, who: Principal, settings: Settings) -> None:
    async def slowly(_receiver: Receiver, _arrival: Arrival, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        answer(writer, 200)

    def start() -> subprocess.Popen[bytes]:
        env = {**os.environ, **settings.env()}
        return subprocess.Popen([sys.executable, "-m", "pipelines.deliveries"], env=env)

    async def scenario() -> None:
        async with receiving(slowly) as receiver:
            hook, _ = subscribe(store, who, receiver.url)
            for number in range(60):
                happen(store, who, number, f"prompt:{number % 6}")
            for kill_at in (5, 20, 35):
                process = start()
                await receiver.until(kill_at, within_s=60)
                process.send_signal(signal.SIGKILL)
                process.wait()
            process = start()
            found = await until_ended(store, who, hook, within_s=120)
            process.terminate()
            assert process.wait(10) == 0
            assert [delivery.status for delivery in found] == ["delivered"] * 60
            for key in range(6):
                numbers = [
                    a.event["details"]["n"]
                    for a in receiver.arrivals
                    if a.event["details"]["of"] == f"prompt:{key}"
                ]
                assert sorted(numbers) == numbers, "an attempt is made again before the next event is sent"
                assert sorted(set(numbers)) == list(range(key, 60, 6))

    asyncio.run(scenario())
