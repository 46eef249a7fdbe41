"""What is sent and signed, and when a failed attempt is made again."""

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.webhooks import (
    ATTEMPT_S,
    GIVE_UP_AFTER,
    LEASE,
    Attempted,
    Claimed,
    Event,
    Secrets,
    describe_failure,
    event_body,
    headers_of,
    plan_retry,
)

NOW = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
EVENT = Event(UUID(int=7), 3, 4, "report_finished", {"name": "Grüße", "b": 1, "a": None}, NOW)


def claimed(previous: str | None = None) -> Claimed:
    return Claimed(1, 2, 5, "https://x.example/", EVENT, Secrets("now", previous), NOW + GIVE_UP_AFTER)


def test_the_body_is_what_existing_receivers_spell_to_verify_it() -> None:
    body = event_body(EVENT)
    assert body == json.dumps(json.loads(body), sort_keys=True).encode()
    assert json.loads(body)["timestamp"] == "2026-01-05T09:30:00Z"


def test_headers_carry_one_signature_under_two_names_and_the_previous_one_during_an_overlap() -> None:
    body = event_body(EVENT)
    expected = hmac.new(b"now", body, hashlib.sha256).hexdigest()
    headers = headers_of(claimed(), body)
    assert headers["X-Webhook-Signature"] == headers["X-PromptLayer-Signature"] == expected
    assert "X-Webhook-Signature-Previous" not in headers
    overlapping = headers_of(claimed("then"), body)
    assert overlapping["X-Webhook-Signature"] == expected
    previous = hmac.new(b"then", body, hashlib.sha256).hexdigest()
    assert overlapping["X-Webhook-Signature-Previous"] == previous


def test_secrets_do_not_show_in_what_is_printed() -> None:
    assert "now" not in repr(claimed("then")).replace("datetime", "")
    assert "then" not in repr(claimed("then"))


def test_a_lease_outlasts_an_attempt() -> None:
    assert timedelta(seconds=ATTEMPT_S) < LEASE


@given(st.integers(1, 10_000), st.floats(0, 1), st.floats(0, 1e9))
def test_waits_double_to_an_hour_and_never_pass_the_day(attempt: int, chance: float, after_s: float) -> None:
    due_at = plan_retry(attempt, NOW, NOW + GIVE_UP_AFTER, chance=chance, retry_after_s=after_s)
    assert due_at is not None
    wait = due_at - NOW
    assert timedelta(seconds=0.5) <= wait <= timedelta(hours=1)
    if attempt > 12:
        assert wait >= timedelta(minutes=30)
    assert plan_retry(attempt, NOW, NOW, chance=chance) is None


def test_a_target_that_fails_all_day_is_tried_some_dozens_of_times() -> None:
    tries, at = 1, NOW
    while (due_at := plan_retry(tries, at, NOW + GIVE_UP_AFTER, chance=0.5)) is not None:
        tries, at = tries + 1, due_at
    assert 25 <= tries <= 50
    assert NOW + timedelta(hours=22) < at <= NOW + GIVE_UP_AFTER


@pytest.mark.parametrize(
    ("attempted", "words"),
    [
        (Attempted(204), None),
        (Attempted(200, error="no whole answer within 10 s"), None),
        (Attempted(500), "answered 500"),
        (Attempted(302), "answered 302: redirects are not followed"),
        (Attempted(error="x" * 1000), "x" * 500),
    ],
)
def test_a_failure_is_told_in_a_sentence(attempted: Attempted, words: str | None) -> None:
    assert describe_failure(attempted) == words
