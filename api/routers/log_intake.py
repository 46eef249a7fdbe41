"""Ways in beside E1: batches of logs, and traces over OTLP."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Header, Request, Response
from starlette.concurrency import run_in_threadpool

from api import otlp
from api.deps import Service, Who, service_of
from api.errors import UnsupportedMedia
from api.json_body import validate_value
from api.limits import read_body
from api.openapi import errors, streamed_body
from api.routing import GuardedRoute, guarded_router, needs
from api.schemas.batches import LogBatch, LogBatchAnswer, read_batch
from api.schemas.request_logs import LOG_REQUEST
from storage.domain.errors import Conflict, Invalid, NotFound, PromptlakeError
from storage.domain.keys import Principal
from storage.domain.spans.read import SpanCall, prompt_as_metadata
from storage.log_batches import NewLog, log_requests
from storage.request_logs import log_request

MAX_BATCH_BYTES = 67_108_864
# Spans of one export that are handed to the tail together.
_AT_ONCE = 256

router = guarded_router(tags=["request logs"])


@router.post(
    "/api/public/v2/requests/batch",
    status_code=201,
    summary="Log many requests",
    responses=errors(NotFound, Conflict),
    openapi_extra=streamed_body(LogBatch),
)
@needs("ingest", streams_body=True)
async def log_batch(
    request: Request,
    who: Who,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> LogBatchAnswer:
    """Record up to 1,000 logs of together 64 MB, all or none, durably before the answer.

    A repeat with the same `Idempotency-Key` within 24 hours returns the first ids and records nothing.
    """
    service = service_of(request)
    raw = await read_body(request, MAX_BATCH_BYTES, service.settings.body_idle_s)
    async with service.reading:
        logs = await run_in_threadpool(read_batch, raw, who)
        new = [NewLog(log.fields(), log.given_score()) for log in logs]
    ids = await log_requests(service.logs, who, new, idempotency_key=idempotency_key)
    return LogBatchAnswer(ids=ids)


class OtlpRoute(GuardedRoute):
    """A route that answers failures as OTLP wants them, and takes the key as a bearer token as well."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handle(request)
            except PromptlakeError as error:
                return otlp.refusal(error, request.headers.get("content-type", ""))

        return answered


@needs("ingest", streams_body=True, bearer=True)
async def export_traces(request: Request, who: Who) -> Response:
    """Take spans of traces (OTLP over HTTP, protobuf or JSON, gzip or not).

    Spans that record a call of a model become logged requests: those of the GenAI semantic conventions of
    OpenTelemetry and of OpenInference. A span that is sent again within a day is logged once. Other spans are
    accepted and not kept, which the answer's `error_message` says; `rejected_spans` could not be read.
    A failure is a `google.rpc.Status` in the encoding of the call.
    """
    service = service_of(request)
    media = otlp.media_of(request.headers.get("content-type", ""))
    most = service.settings.max_body_bytes
    raw = await read_body(request, most, service.settings.body_idle_s)
    # brings protobuf, which a start does not wait for
    from api import otlp_traces  # noqa: PLC0415

    encoding = request.headers.get("content-encoding", "")
    async with service.reading:
        read = await run_in_threadpool(otlp_traces.read_export, raw, media, encoding, most)
    refused = list(read.refused)
    for some in _groups(read.calls):
        kept = await asyncio.gather(*(_log_span(service, who, call) for call in some))
        refused += [said for said in kept if said]
    return otlp_traces.answer(media, rejected=len(refused), message=_told(refused, read.others))


def _groups(calls: Sequence[SpanCall]) -> Iterable[Sequence[SpanCall]]:
    return (calls[start : start + _AT_ONCE] for start in range(0, len(calls), _AT_ONCE))


async def _log_span(service: Service, who: Principal, call: SpanCall) -> str | None:
    """Log one call once; return why it is refused, None: it is not."""
    try:
        try:
            await _log_call(service, who, call, call.prompt)
        except NotFound:  # a prompt of elsewhere
            body = {**call.body, "metadata": {**call.body["metadata"], **prompt_as_metadata(call.prompt)}}
            await _log_call(service, who, replace(call, body=body), {})
    except Invalid as error:
        return error.message
    return None


async def _log_call(service: Service, who: Principal, call: SpanCall, prompt: dict[str, Any]) -> None:
    log = validate_value(LOG_REQUEST, {**call.body, **prompt})
    await log_request(service.logs, who, fields=log.fields(), once=call.span)


def _told(refused: Sequence[str], others: int) -> str:
    said = []
    if refused:
        said.append(f"{len(refused)} spans could not be logged; the first: {refused[0]}")
    if others:
        said.append(f"{others} spans record no call of a model and are not kept")
    return "; ".join(said)


router.add_api_route(
    "/v1/traces",
    export_traces,
    methods=["POST"],
    summary="Export traces (OTLP)",
    responses={200: otlp.DESCRIBED_ANSWER, **errors(UnsupportedMedia)},
    openapi_extra=otlp.DESCRIBED_BODY,
    route_class_override=OtlpRoute,
    response_class=Response,
)
