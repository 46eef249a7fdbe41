"""Batches of logs: recorded durably together, all or none, with ids that follow one another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from storage.domain.errors import Invalid, NotFound
from storage.domain.keys import Principal
from storage.domain.request_logs import (
    Score,
    check_exchange,
    check_idempotency_key,
    check_prompt_use,
    to_us,
)
from storage.engine.log_body import encode_body
from storage.engine.rows.log_tail import Entry, Idempotency, Submission
from storage.prompt_links import PromptLinks
from storage.request_logs import LogDesk, repeated_log_id, request_hash


@dataclass(frozen=True, slots=True)
class NewLog:
    """A log as the wire has it: its fields, times in microseconds since 1970, and the score given."""

    fields: dict[str, Any]
    score: Score | None = None


async def log_requests(
    desk: LogDesk, who: Principal, logs: Sequence[NewLog], *, idempotency_key: str | None = None
) -> list[int]:
    """Record exchanges durably, all or none; return their ids in the order given.

    Raises:
        Invalid: the fields of one do not fit together; its place is named (`requests.17...`).
        NotFound: a template or version is unknown.
        Conflict: the idempotency key was used for another batch.
        Unavailable: nothing was logged.
    """
    try:
        submission = await asyncio.to_thread(_prepared, desk, who, logs, idempotency_key)
        first = await desk.sender.append(submission)
    except NotFound:  # of what was logged the first time the prompt may have been deleted since
        found = await asyncio.to_thread(_find_repeated, desk, who, logs, idempotency_key)
        if found is None:
            raise
        first = found
    return list(range(first, first + len(logs)))


def _prepared(
    desk: LogDesk, who: Principal, logs: Sequence[NewLog], idempotency_key: str | None
) -> Submission:
    if idempotency_key is not None:
        check_idempotency_key(idempotency_key)
    now_us = to_us(desk.store.now())
    entries: list[Entry] = []
    problems = []
    for at, log in enumerate(logs):
        try:
            body = _checked_body(desk.prompts, who.workspace_id, log.fields)
        except Invalid as error:
            problems += [
                replace(one, loc=("body", "requests", str(at), *one.loc[1:])) for one in error.problems
            ]
            continue
        except NotFound as error:
            raise NotFound(f"requests.{at}: {error.message}") from error
        entries.append(Entry(who.workspace_id, now_us, body, log.score))
    if problems:
        raise Invalid(*problems)
    return Submission(
        tuple(entries), None if idempotency_key is None else _idempotency(idempotency_key, logs)
    )


def _find_repeated(
    desk: LogDesk, who: Principal, logs: Sequence[NewLog], idempotency_key: str | None
) -> int | None:
    again = None if idempotency_key is None else _idempotency(idempotency_key, logs)
    return repeated_log_id(desk.store, who, again)


def _idempotency(key: str, logs: Sequence[NewLog]) -> Idempotency:
    """What makes two batches the same: all that was said, as it was said."""
    said = sha256()
    for log in logs:
        said.update(request_hash(encode_body(log.fields), log.score))
    return Idempotency(key, said.digest())


def _checked_body(links: PromptLinks, workspace_id: int, fields: dict[str, Any]) -> bytes:
    check_exchange(
        status=fields["status"],
        error_type=fields["error_type"],
        start_us=fields["request_start_time"],
        end_us=fields["request_end_time"],
    )
    check_prompt_use(fields)
    link = links.find(
        workspace_id,
        prompt_id=fields["prompt_id"],
        prompt_name=fields["prompt_name"],
        version_number=fields["prompt_version_number"],
    )
    if link is not None:
        fields = {**fields, "prompt_id": link.prompt_id, "prompt_name": link.prompt_name}
    return encode_body(fields)
