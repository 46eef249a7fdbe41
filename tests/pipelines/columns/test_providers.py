"""The operator's list of providers, and what a refusal of a provider means."""

import pytest

from pipelines.providers.failures import failure_of, read_answer, retry_after_s
from pipelines.providers.protocol import ProviderFailure
from pipelines.providers.retries import RetryPolicy
from storage.domain.llm_providers import parse_providers
from storage.settings import SettingError, Settings


def test_providers_are_read_from_a_list() -> None:
    found = parse_providers(" groq = https://api.example/v1 , local=http://127.0.0.1:1/v1,")
    assert found == {"groq": "https://api.example/v1", "local": "http://127.0.0.1:1/v1"}
    assert parse_providers("") == {}


@pytest.mark.parametrize(
    "text", ["Groq=http://a", "a", "a=ftp://b", "openai=http://a", "a=http://a,a=http://b"]
)
def test_a_wrong_list_is_refused_and_names_the_variable(text: str) -> None:
    with pytest.raises(SettingError, match="PROMPTLAKE_PROVIDERS"):
        Settings.from_env({"PROMPTLAKE_PROVIDERS": text})


@pytest.mark.parametrize(
    ("status", "body", "error", "again"),
    [
        (429, b'{"error": {"message": "slow", "code": "rate_limit_exceeded"}}', "PROVIDER_RATE_LIMIT", True),
        (429, b'{"error": {"message": "pay", "code": "insufficient_quota"}}', "PROVIDER_QUOTA_LIMIT", False),
        (400, b'{"error": {"message": "Your credit balance is too low"}}', "PROVIDER_QUOTA_LIMIT", False),
        (402, b"", "PROVIDER_QUOTA_LIMIT", False),
        (401, b"<html>", "PROVIDER_AUTH_ERROR", False),
        (403, b"[]", "PROVIDER_AUTH_ERROR", False),
        (404, b'{"message": "no model"}', "PROVIDER_ERROR", False),
        (504, b"", "PROVIDER_TIMEOUT", True),
        (529, b'{"error": {"type": "overloaded_error", "message": "busy"}}', "PROVIDER_ERROR", True),
    ],
)
def test_refusals_are_words_of_request_logs(status: int, body: bytes, error: str, again: bool) -> None:
    failure = failure_of(status, body, {})
    assert (failure.error_type, failure.again) == (error, again)
    assert failure.message.startswith(f"HTTP {status}")


def test_what_is_no_answer_may_go_better_next_time() -> None:
    for body in (b"", b'{"choices": [', b"[]", b'{"error": {"message": "oh"}}'):
        with pytest.raises(ProviderFailure) as raised:
            read_answer(body)
        assert raised.value.again


def test_retry_after_is_read_in_all_its_forms() -> None:
    assert retry_after_s({"retry-after": "2"}) == 2
    assert retry_after_s({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after_s({"retry-after": "soon"}) is None
    assert retry_after_s({}) is None


def test_waits_double_within_bounds_and_end() -> None:
    policy = RetryPolicy(most=4, first_s=1, longest_s=3, chance=lambda: 1.0)
    failure = ProviderFailure("PROVIDER_ERROR", "", again=True)
    assert [policy.wait_s(failure, tried) for tried in (1, 2, 3, 4)] == [1, 2, 3, None]
    assert RetryPolicy(first_s=1, chance=lambda: 0.0).wait_s(failure, 1) == 0.5
    limited = ProviderFailure("PROVIDER_RATE_LIMIT", "", again=True, after_s=7)
    assert policy.wait_s(limited, 5) == 8
    assert policy.wait_s(ProviderFailure("PROVIDER_RATE_LIMIT", "", again=True, after_s=9_999), 1) is None
    assert policy.wait_s(ProviderFailure("PROVIDER_ERROR", ""), 1) is None
