"""Deliveries to a real receiver on loopback: signed, in order, at least once, whatever the receiver does."""

import asyncio
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines import attempts
from pipelines.deliveries import deliver
from storage import outbox
from storage.deliveries import get_delivery, list_deliveries, redeliver
from storage.domain.errors import Unavailable
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.webhooks import AT_ONCE, KEPT_BYTES, Delivery
from storage.engine.schema import webhooks as webhook_rows
from storage.events import record_event
from storage.settings import Settings
from storage.store import Store
from storage.webhooks import create_webhook, rotate_secret
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.receiving import Arrival, Receiver, answer, receiving

LABELLED = "prompt_template_label_moved"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, webhook_allow="127.0.0.0/8")


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come within 100 ms here, not after seconds; how they are spaced is promised elsewhere."""
    plan = outbox.plan_retry

    def soon(attempt: int, now: Any, give_up_at: Any, **options: Any) -> Any:
        due_at = plan(attempt, now, give_up_at, **options)
        return None if due_at is None else now + timedelta(milliseconds=100)

    monkeypatch.setattr(outbox, "plan_retry", soon)


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


def test_a_target_that_hangs_holds_up_neither_others_nor_more_than_its_share(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "ATTEMPT_S", 1.0)

    async def hang(_receiver: Receiver, arrival: Arrival, _writer: asyncio.StreamWriter) -> None:
        await arrival.given_up()

    async def scenario() -> None:
        async with receiving(hang) as stuck, receiving() as well:
            hung, _ = subscribe(store, who, stuck.url)
            fine, _ = subscribe(store, who, well.url)
            for number in range(3 * AT_ONCE):
                happen(store, who, number, f"prompt:{number}")
            started = time.monotonic()
            async with delivering(store):
                await until_ended(store, who, fine)
                assert time.monotonic() - started < 15
                await stuck.until(2 * AT_ONCE)
            assert stuck.most_open == AT_ONCE
            assert well.most_open <= AT_ONCE
            tried = [delivery for delivery in shown(store, who, hung) if delivery.attempts]
            assert tried
            assert any("no whole answer" in (delivery.error or "") for delivery in tried)

    asyncio.run(scenario())


def test_a_redirect_is_not_followed(store: Store, who: Principal) -> None:
    async def scenario() -> None:
        async with receiving() as secret_place:

            async def lure(_receiver: Receiver, _arrival: Arrival, writer: asyncio.StreamWriter) -> None:
                answer(writer, 307, Location=secret_place.url)

            async with receiving(lure) as receiver, delivering(store):
                hook, _ = subscribe(store, who, receiver.url)
                happen(store, who, 1)
                await receiver.until(2)
                (delivery,) = shown(store, who, hook)
                assert delivery.status == "pending"
                assert delivery.error == "answered 307: redirects are not followed"
                assert secret_place.arrivals == []

    asyncio.run(scenario())


def test_an_endless_answer_is_read_to_its_first_64_kb(store: Store, who: Principal) -> None:
    sent = 0

    async def flood(_receiver: Receiver, _arrival: Arrival, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\nContent-Encoding: gzip\r\n\r\n")
        for _ in range(16_000):
            writer.write(b"x" * 65_536)
            sent += 65_536
            await writer.drain()

    async def scenario() -> None:
        async with receiving(flood) as receiver, delivering(store):
            hook, _ = subscribe(store, who, receiver.url)
            happen(store, who, 1)
            (delivery,) = await until_ended(store, who, hook)
            assert delivery.status == "delivered"
            assert get_delivery(store, who, hook, delivery.id).response_body == b"x" * KEPT_BYTES
        assert sent < 20_000_000

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


def test_a_name_that_turns_private_after_it_was_accepted_is_not_called(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"hooks.example.com": "93.184.215.14"}
    real = socket.getaddrinfo

    def fake(host: str, port: int, *args: Any, **options: Any) -> Any:
        return real(names.get(host, host), port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", fake)

    async def scenario() -> None:
        async with receiving() as receiver, delivering(store):
            hook, _ = subscribe(store, who, f"http://hooks.example.com:{receiver.port}/")
            names["hooks.example.com"] = "10.0.0.7"
            happen(store, who, 1)
            delivery = await until_tried(store, who, hook)
            assert "leads to 10.0.0.7" in str(delivery.error)
            # allowed again, it is called at the address that was checked, under its own name
            names["hooks.example.com"] = "127.0.0.1"
            (arrival,) = await receiver.until(1)
            assert arrival.headers["host"] == f"hooks.example.com:{receiver.port}"

    asyncio.run(scenario())


def test_a_certificate_must_be_of_the_name_that_was_asked_for(
    store: Store, who: Principal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"],
            *["-subj", "/CN=hooks.example.com", "-addext", "subjectAltName=DNS:hooks.example.com"],
            *["-days", "2", "-keyout", str(key), "-out", str(certificate)],
        ],
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **_: [(2, 1, 6, "", ("127.0.0.1", port))])
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)

    async def scenario() -> None:
        async with receiving(tls=serving) as receiver, delivering(store):
            right, _ = subscribe(store, who, f"https://hooks.example.com:{receiver.port}/")
            wrong, _ = subscribe(store, who, f"https://other.example.com:{receiver.port}/")
            happen(store, who, 1)
            await receiver.until(1)
            assert "CERTIFICATE_VERIFY_FAILED" in str((await until_tried(store, who, wrong)).error)
            assert (await until_tried(store, who, right)).status == "delivered"
            assert len(receiver.arrivals) == 1

    asyncio.run(scenario())


def test_a_url_that_is_none_any_more_fails_alone(store: Store, who: Principal) -> None:
    async def scenario() -> None:
        async with receiving() as receiver, delivering(store):
            odd, _ = subscribe(store, who, receiver.url)
            fine, _ = subscribe(store, who, receiver.url)
            with store.catalog.transaction() as connection:
                connection.execute(
                    webhook_rows.update().where(webhook_rows.c.id == odd).values(url="http://")
                )
            happen(store, who, 1)
            assert (await until_tried(store, who, odd)).error == "names no host"
            assert (await until_tried(store, who, fine)).status == "delivered"

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
