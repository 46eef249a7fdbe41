"""A store whose webhooks may reach loopback, and retries that come soon."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from storage import outbox
from storage.settings import Settings


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, webhook_allow="127.0.0.0/8")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries come within 100 ms here, not after seconds; how they are spaced is promised elsewhere."""
    plan = outbox.plan_retry

    def soon(attempt: int, now: Any, give_up_at: Any, **options: Any) -> Any:
        due_at = plan(attempt, now, give_up_at, **options)
        return None if due_at is None else now + timedelta(milliseconds=100)

    monkeypatch.setattr(outbox, "plan_retry", soon)
