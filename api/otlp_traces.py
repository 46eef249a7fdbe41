"""Traces as OTLP spells them, in protobuf and JSON; loaded when the first export comes."""

import base64
import binascii
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from starlette.responses import JSONResponse, Response

from api.json_body import load_json
from api.otlp import JSON, PROTOBUF, inflated
from storage.domain import errors as facts
from storage.domain.spans.read import SpanCall, is_call, read_span
from storage.domain.spans.span import Span, SpanEvent
from storage.prices import price_of

# Spans, attributes, events and values of one export: more than 10 MB of real ones hold.
MOST_PARTS = 500_000
_IDS = frozenset({"traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id"})
_MOST_DEPTH = 32

Several = TypeVar("Several", bound=Sized)


@dataclass(frozen=True, slots=True)
class Export:
    """What an export holds: calls of models, why spans of such were refused, how many other spans."""

    calls: Sequence[SpanCall]
    refused: Sequence[str]
    others: int


def read_export(raw: bytes, media: str, encoding: str, most_bytes: int) -> Export:
    """Read an export of traces.

    Raises:
        UnsupportedMedia: the encoding is not gzip.
        PayloadTooLarge: inflated it is larger, or it has too many parts.
        Malformed: it is no export of traces.
    """
    try:
        return _read(inflated(raw, encoding, most_bytes), media)
    except facts.PromptlakeError as error:
        # its traceback would keep all that was parsed until the next garbage collection
        refusal = error.with_traceback(None)
    raise refusal


def _read(body: bytes, media: str) -> Export:
    parts = _Parts()
    request = _from_json(body, parts) if media == JSON else _from_protobuf(body)
    count = 0
    calls: list[SpanCall] = []
    refused: list[str] = []
    for span in _spans(request, parts):
        count += 1
        if not is_call(span):
            continue
        try:
            call = read_span(span)
        except ValueError as error:
            refused.append(str(error))
            continue
        calls.append(_priced(call))
    return Export(calls, refused, count - len(calls) - len(refused))


def _priced(call: SpanCall) -> SpanCall:
    price = call.price
    if price is None:
        price = price_of(call.body["provider"], call.body["model"], call.usage, answered_by=call.answered_by)
    return replace(call, body={**call.body, "price": price})


class _Parts:
    """Counts what is walked through: parts of nothing cost bytes a sender does not have to pay for."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def of(self, some: Several) -> Several:
        """Return these, if there may be so many more.

        Raises:
            PayloadTooLarge: there may not.
        """
        self._left -= len(some)
        if self._left < 0:
            raise facts.PayloadTooLarge(f"An export has at most {MOST_PARTS} spans, attributes and values")
        return some


def _spans(request: ExportTraceServiceRequest, parts: _Parts) -> Iterator[Span]:
    for group in parts.of(request.resource_spans):
        resource = _values(group.resource.attributes, parts)
        for scope in parts.of(group.scope_spans):
            for span in parts.of(scope.spans):
                yield _span(span, resource, parts)


def _from_protobuf(body: bytes) -> ExportTraceServiceRequest:
    try:
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
    except DecodeError as error:
        raise facts.Malformed("The body is no ExportTraceServiceRequest") from error
    return request


def _from_json(body: bytes, parts: _Parts) -> ExportTraceServiceRequest:
    given = load_json(body)
    if not isinstance(given, dict):
        raise facts.Malformed("The body is no ExportTraceServiceRequest in JSON: it is no object")
    try:
        request = ExportTraceServiceRequest()
        ParseDict(_with_ids(given, parts), request, ignore_unknown_fields=True)
    except (ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise facts.Malformed("The body is no ExportTraceServiceRequest in JSON") from error
    return request


def _with_ids(value: Any, parts: _Parts) -> Any:
    """Spell ids as protobuf's JSON wants them: OTLP has them in hexadecimal."""
    if isinstance(value, list):
        return [_with_ids(inner, parts) for inner in parts.of(value)]
    if not isinstance(value, dict):
        return value
    return {
        name: _base64(inner) if name in _IDS and isinstance(inner, str) else _with_ids(inner, parts)
        for name, inner in value.items()
    }


def _base64(hexadecimal: str) -> str:
    try:
        return base64.b64encode(bytes.fromhex(hexadecimal)).decode()
    except ValueError as error:
        raise facts.Malformed("Ids of traces and spans are hexadecimal") from error


def _span(span: trace_pb2.Span, resource: dict[str, Any], parts: _Parts) -> Span:
    events = parts.of(span.events)
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_values(span.attributes, parts),
        events=[SpanEvent(event.name, _values(event.attributes, parts)) for event in events],
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        status_message=span.status.message,
        resource=resource,
    )


def _values(pairs: Sequence[KeyValue], parts: _Parts, depth: int = 0) -> dict[str, Any]:
    return {pair.key: _value(pair.value, parts, depth) for pair in parts.of(pairs)}


def _value(value: AnyValue, parts: _Parts, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > _MOST_DEPTH:
        return None
    if kind == "array_value":
        return [_value(inner, parts, depth + 1) for inner in parts.of(value.array_value.values)]
    if kind == "kvlist_value":
        return _values(value.kvlist_value.values, parts, depth + 1)
    if kind == "bytes_value":
        return binascii.b2a_base64(value.bytes_value, newline=False).decode()
    found = getattr(value, kind)
    # JSON has no word for these
    return str(found) if isinstance(found, float) and found - found != 0 else found


def answer(media: str, *, rejected: int, message: str) -> Response:
    """Answer an export that was taken, perhaps but for some spans; a message without them is a hint."""
    made = ExportTraceServiceResponse()
    if rejected or message:
        made.partial_success.rejected_spans = rejected
        made.partial_success.error_message = message
    if media == JSON:
        return JSONResponse(MessageToDict(made))
    return Response(made.SerializeToString(), media_type=PROTOBUF)
