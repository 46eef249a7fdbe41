"""Request logs: record one durably (E1), read one, scan many; each log exactly once at every moment."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from socket import socket
from typing import Any

from storage.domain.errors import NotFound, Unavailable
from storage.domain.keys import Principal
from storage.domain.prompts import PromptLink
from storage.domain.request_logs import (
    DEFAULT_SCORE_NAME,
    LogFilter,
    Score,
    blueprint,
    check_exchange,
    check_idempotency_key,
    check_prompt_use,
    iso_us,
    to_us,
)
from storage.engine.log_body import encode_body
from storage.engine.log_reader import LogBatches, StoredLog, find_stored_log, read_moment
from storage.engine.log_scan import scan_logs
from storage.engine.log_sender import LogSender, connect_unix
from storage.engine.rows.log_tail import Entry, Idempotency, Submission, find_repeated
from storage.log_pace import look_bytes
from storage.log_writing import writing_beside
from storage.prompt_links import PromptLinks
from storage.store import Store

# Keys of clients are ASCII: none begins like this.
_ONCE = "once·"
_MAX_ID = 9_223_372_036_854_775_807


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """What E1 answers: the log's id, the blueprint of the exchange, and its status as given."""

    id: int
    prompt_version: dict[str, Any] | None
    status: str
    error_type: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class LogDesk:
    """Where logs are handed in: the store, the way to the tail's writer, the templates seen lately."""

    store: Store
    sender: LogSender
    prompts: PromptLinks


@asynccontextmanager
async def opened_log_desk(store: Store, on_much: Callable[[], None] | None = None) -> AsyncIterator[LogDesk]:
    """Open the desk of this process: a thread of it writes the tail, or another process does.

    `on_much` is told, on the event loop, whenever so many logs were handed in here that a flush may be due.
    """
    settings = store.settings
    with ExitStack() as stack:
        if settings.log_writer == "remote":
            connect: Callable[[], socket] = partial(connect_unix, settings.log_socket)
        else:
            connect = stack.enter_context(writing_beside(store.logs, flush_bytes=settings.flush_bytes)).dup
        sender = LogSender(connect, on_much=on_much, much_bytes=look_bytes(settings))
        try:
            yield LogDesk(store, sender, PromptLinks(store))
        finally:
            await sender.close()


def logs_are_written(desk: LogDesk, *, within_s: float = 2.0) -> bool:
    """Tell, to a thread beside the desk's event loop, whether the tail can be committed to now."""
    nothing = desk.sender.append(Submission(()))
    try:
        asyncio.run_coroutine_threadsafe(nothing, desk.sender.loop).result(within_s)
    except (Unavailable, TimeoutError):
        return False
    return True


async def log_request(
    desk: LogDesk,
    who: Principal,
    *,
    fields: dict[str, Any],
    score: Score | None = None,
    idempotency_key: str | None = None,
    once: str | None = None,
) -> LoggedRequest:
    """Record an exchange durably (E1); `fields` are those of the wire, times in microseconds since 1970.

    `once` names what is logged, apart from the keys that clients choose: for a day it is logged only once.

    Raises:
        Invalid: the fields do not fit together.
        NotFound: the template or version is unknown.
        Conflict: the idempotency key was used for another request.
        Unavailable: nothing was logged.
    """
    check_exchange(
        status=fields["status"],
        error_type=fields["error_type"],
        start_us=fields["request_start_time"],
        end_us=fields["request_end_time"],
    )
    key = None if idempotency_key is None else check_idempotency_key(idempotency_key)
    check_prompt_use(fields)
    linked = fields["prompt_id"] is not None or fields["prompt_name"] is not None
    body = b"" if linked and key is None else encode_body(fields)
    # of what was said: the prompt may be called otherwise, or be gone, when it is said again
    idempotency = None if key is None else Idempotency(key, request_hash(body, score))
    if linked:
        try:
            link = await _link(desk.prompts, who.workspace_id, fields)
        except NotFound:
            log_id = await asyncio.to_thread(repeated_log_id, desk.store, who, idempotency)
            if log_id is None:
                raise
            return _logged(log_id, fields)
        fields |= {"prompt_id": link.prompt_id, "prompt_name": link.prompt_name}
        body = encode_body(fields)
    if once is not None:
        idempotency = Idempotency(_ONCE + once, sha256(once.encode()).digest())
    entry = Entry(who.workspace_id, to_us(desk.store.now()), body, score)
    return _logged(await desk.sender.append(Submission((entry,), idempotency)), fields)


def _logged(log_id: int, fields: dict[str, Any]) -> LoggedRequest:
    return LoggedRequest(
        log_id, blueprint(fields), fields["status"], fields["error_type"], fields["error_message"]
    )


def repeated_log_id(store: Store, who: Principal, idempotency: Idempotency | None) -> int | None:
    """Return the id that a request was given when it was made first; None: it is new, or had no key."""
    if idempotency is None:
        return None
    with store.logs.read() as connection:
        return find_repeated(connection, who.workspace_id, idempotency, to_us(store.now()))


async def _link(links: PromptLinks, workspace_id: int, fields: dict[str, Any]) -> PromptLink:
    prompt_id, name, number = (
        fields["prompt_id"],
        fields["prompt_name"],
        fields["prompt_version_number"],
    )
    link = links.remembered((workspace_id, prompt_id, name, number)) or await asyncio.to_thread(
        links.find, workspace_id, prompt_id=prompt_id, prompt_name=name, version_number=number
    )
    if link is None:
        raise NotFound("No such prompt")
    return link


def request_hash(body: bytes, score: Score | None) -> bytes:
    """What makes two calls of E1 the same."""
    said = b"" if score is None else f"\n{score.score} {score.name}".encode()
    return sha256(body + said).digest()


def get_request_log(store: Store, who: Principal, log_id: int) -> dict[str, Any]:
    """Return a log, flat: every field that E1 takes, its scores by name, latency in ms and its blueprint.

    Raises:
        NotFound: the workspace has no such log.
    """
    if not 0 < log_id <= _MAX_ID:
        raise NotFound("No such request log")
    found = find_stored_log(store.lake, store.logs, store.data, who.workspace_id, log_id)
    if found is None:
        raise NotFound("No such request log")
    return _flat(found)


def _flat(found: StoredLog) -> dict[str, Any]:
    fields = found.fields
    start_us, end_us = fields["request_start_time"], fields["request_end_time"]
    return {
        "id": found.id,
        "request_id": found.id,
        **fields,
        "request_start_time": iso_us(start_us),
        "request_end_time": iso_us(end_us),
        "score": found.scores.get(DEFAULT_SCORE_NAME),
        "scores": found.scores,
        "latency_ms": (end_us - start_us) / 1000,
        "prompt_blueprint": blueprint(fields),
        "created_at": iso_us(found.created_us),
    }


def scan_request_logs(
    store: Store, workspace_id: int, wanted: LogFilter, *, batch_rows: int = 1000
) -> LogBatches:
    """Scan the logs of a workspace as they stand now, in Arrow batches of the promised columns (E8, E13).

    Close the iterator when it is not read to its end. Columns are `LOG_COLUMNS`; `input`, `output`,
    `parameters` and `prompt_input_variables` are JSON text.
    """
    return scan_logs(store.data, read_moment(store.logs, workspace_id), wanted, batch_rows)
