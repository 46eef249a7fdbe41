"""Bodies that carry a file: received piece by piece into the spool, never held whole."""

import asyncio
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import TypeVar

from anyio import CancelScope
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from api.deps import service_of
from api.errors import BodyTimeout, problems_of
from api.file_body import FileBodyReader
from api.own_workspace import is_untold, leave_out_own
from storage.domain.errors import Invalid, PayloadTooLarge
from storage.domain.keys import Principal
from storage.domain.uploads import Upload
from storage.uploads import Incoming

Body = TypeVar("Body", bound=BaseModel)

# Large enough that the hop to a thread costs little, small enough that the loop waits for no decoding.
_BATCH_BYTES = 524_288
# A base64 character may be spelled \u0041, six times its size, and stands for 6 bits.
_MOST_BYTES_PER_BYTE = 8


async def receive_file(
    request: Request, model: type[Body], path: tuple[str, ...]
) -> tuple[Body, Upload | None]:
    """Read a JSON body whose member at `path` is a base64 file; return it validated, and the parked file.

    In the model the file's text is a placeholder, empty if the file is. The caller discards the upload
    when it is not used.

    Raises:
        Malformed: no JSON, or no base64.
        Invalid: the body does not fit the model.
        PayloadTooLarge: the file or the rest is too large.
        BodyTimeout: no byte came for a while.
        Unavailable: the disk is full.
    """
    service = service_of(request)
    settings = service.settings
    _check_declared(request, settings.max_file_bytes * _MOST_BYTES_PER_BYTE + settings.max_body_bytes)
    incoming = Incoming(service.store)
    reader = FileBodyReader(path, incoming.write, settings.max_body_bytes)
    try:
        await _decode(request, reader, settings.body_idle_s)
        body = await run_in_threadpool(_validated, reader, model, request.state.principal)
        upload = await run_in_threadpool(incoming.park) if reader.has_file else None
    except BaseException:
        # also when the caller goes away or the server stops
        with CancelScope(shield=True):
            await run_in_threadpool(incoming.discard)
        raise
    return body, upload


def request_hash(body: BaseModel, upload: Upload | None) -> str:
    """Return what makes two calls the same: validated fields but the operation id, and the file's bytes."""
    fields = json.dumps(body.model_dump(mode="json", exclude={"operation_id"}), sort_keys=True)
    return sha256(f"{upload.sha256 if upload else ''}\n{fields}".encode()).hexdigest()


def _check_declared(request: Request, most: int) -> None:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise PayloadTooLarge("The body is larger than the largest file can make it")


async def _decode(request: Request, reader: FileBodyReader, idle_s: float) -> None:
    """Feed the body to the reader: a thread decodes one batch while the next one arrives."""
    decoding: asyncio.Task[None] | None = None
    try:
        async for batch in _batches(request, idle_s):
            if decoding is not None:
                await asyncio.shield(decoding)
            decoding = asyncio.create_task(run_in_threadpool(reader.feed, batch))
        if decoding is not None:
            await asyncio.shield(decoding)
    except BaseException as error:
        if decoding is not None:
            # the thread may still write: nobody may remove the file under it
            with CancelScope(shield=True):
                await asyncio.wait([decoding])
            refusal = None if decoding.cancelled() else decoding.exception()
            if refusal is not None and isinstance(error, BodyTimeout):
                raise refusal from None
        raise


async def _batches(request: Request, idle_s: float) -> AsyncIterator[bytes]:
    held: list[bytes] = []
    size = 0
    more = True
    while more:
        try:
            async with asyncio.timeout(idle_s):
                message = await request.receive()
        except TimeoutError as error:
            raise BodyTimeout(f"No byte of the body came for {idle_s:.0f} seconds") from error
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        held.append(message.get("body", b""))
        size += len(held[-1])
        if size >= _BATCH_BYTES or not more:
            batch = b"".join(held)
            held.clear()
            size = 0
            yield batch


def _validated(reader: FileBodyReader, model: type[Body], who: Principal) -> Body:
    found = reader.finish()
    if is_untold(model):
        leave_out_own(found, who)
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise Invalid(*problems_of(error.errors(), "body")) from error
