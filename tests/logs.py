"""Exchanges to log, made by the tests."""

from typing import Any

from storage.domain.request_logs import Score, to_us
from storage.engine.log_body import encode_body
from storage.engine.rows.log_tail import Entry, Submission, append_group
from storage.store import Store


def exchange(**changes: Any) -> dict[str, Any]:
    """A valid body of E1, with changes."""
    return {
        "provider": "openai",
        "model": "gpt-4o",
        "input": chat("user", "How many legs has a spider?"),
        "output": chat("assistant", "Eight."),
        "request_start_time": "2024-05-01T10:00:00Z",
        "request_end_time": "2024-05-01T10:00:01.250Z",
        **changes,
    }


def chat(role: str, text: str) -> dict[str, Any]:
    return {"type": "chat", "messages": [{"role": role, "content": [{"type": "text", "text": text}]}]}


def stored_fields(**changes: Any) -> dict[str, Any]:
    """The fields of a log as the API hands them to storage: times in microseconds since 1970."""
    return {
        "provider": "openai",
        "model": "gpt-4o",
        "input": chat("user", "How many legs has a spider?"),
        "output": chat("assistant", "Eight."),
        "request_start_time": 1_714_557_600_000_000,
        "request_end_time": 1_714_557_601_250_000,
        "parameters": {},
        "tags": [],
        "metadata": {},
        "prompt_name": None,
        "prompt_id": None,
        "prompt_version_number": None,
        "prompt_input_variables": {},
        "input_tokens": 0,
        "output_tokens": 0,
        "price": 0.0,
        "function_name": "",
        "api_type": None,
        "status": "SUCCESS",
        "error_type": None,
        "error_message": None,
        **changes,
    }


def add_logs(
    store: Store, count: int, *, workspace_id: int = 1, score: Score | None = None, **changes: Any
) -> list[int]:
    """Append logs to the tail as the writer does; return their ids."""
    entries = [
        Entry(workspace_id, to_us(store.now()), encode_body(stored_fields(**changes)), score)
        for _ in range(count)
    ]
    with store.logs.transaction() as connection:
        return [
            id_
            for id_ in append_group(connection, [Submission((entry,)) for entry in entries])
            if isinstance(id_, int)
        ]
