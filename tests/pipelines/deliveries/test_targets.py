"""Deliveries to targets that hang, lure, flood, or are not what they were: real sockets on loopback."""

import asyncio
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines import attempts
from storage.deliveries import get_delivery
from storage.domain.keys import Principal
from storage.domain.webhooks import AT_ONCE, KEPT_BYTES
from storage.engine.webhook_schema import webhooks as webhook_rows
from storage.store import Store
from tests.delivering import delivering, happen, shown, subscribe, until_ended, until_tried
from tests.receiving import Arrival, Receiver, answer, receiving


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
