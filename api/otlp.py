"""OTLP over HTTP: bodies inflated within bounds, failures as OTLP wants them, how both are described."""

import zlib
from typing import Any

from starlette.responses import JSONResponse, Response

from api.errors import UnsupportedMedia, response_for, status_of
from api.json_body import load_json
from storage.domain import errors as facts

PROTOBUF, JSON = "application/x-protobuf", "application/json"
# More parts than any exporter makes.
_MOST_GZIP_PARTS = 64
_GZIP = 16 + zlib.MAX_WBITS
# numbers of google.rpc.Code
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 408: 4, 409: 6, 413: 8, 415: 3, 422: 3, 429: 8, 503: 14}
_INTERNAL = 13


_EXAMPLE = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "tour"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "spanId": "eee19b7ec3c1b174",
                            "name": "chat gpt-4o-mini",
                            "startTimeUnixNano": "1767605400000000000",
                            "endTimeUnixNano": "1767605401250000000",
                            "attributes": [
                                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                                {"key": "gen_ai.provider.name", "value": {"stringValue": "openai"}},
                                {"key": "gen_ai.request.model", "value": {"stringValue": "gpt-4o-mini"}},
                            ],
                        }
                    ]
                }
            ],
        }
    ]
}
_EXPORT = {"type": "object", "properties": {"resourceSpans": {"type": "array", "items": {"type": "object"}}}}
_BYTES = {"type": "string", "format": "binary"}
DESCRIBED_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"title": "ExportTraceServiceRequest", **_EXPORT}, "example": _EXAMPLE},
            PROTOBUF: {"schema": _BYTES, "example": "an ExportTraceServiceRequest"},
        },
    }
}
_PARTIAL = {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "a span has no start time"}}
DESCRIBED_ANSWER: dict[str, Any] = {
    "description": "Taken, perhaps but for some spans",
    "content": {
        JSON: {"schema": {"title": "ExportTraceServiceResponse", "type": "object"}, "example": _PARTIAL},
        PROTOBUF: {"schema": _BYTES},
    },
}


def media_of(content_type: str) -> str:
    """Return which of both types a body has.

    Raises:
        UnsupportedMedia: neither.
    """
    media = content_type.partition(";")[0].strip().lower()
    if media not in {PROTOBUF, JSON}:
        raise UnsupportedMedia(f"Traces are sent as {PROTOBUF} or {JSON}")
    return media


def inflated(body: bytes, encoding: str, most_bytes: int) -> bytes:
    """Undo the encoding of a body, never holding more than `most_bytes` of it.

    Raises:
        UnsupportedMedia: the encoding is not gzip.
        PayloadTooLarge: it is larger.
        Malformed: it is no gzip, or was cut short.
    """
    if encoding.strip().lower() in {"", "identity"}:
        return body
    if encoding.strip().lower() != "gzip":
        raise UnsupportedMedia("A body is compressed with gzip, or not at all")
    made: list[bytes] = []
    size = 0
    try:
        while body:
            if len(made) == _MOST_GZIP_PARTS:
                raise facts.Malformed("The gzip body has too many parts")
            stream = zlib.decompressobj(_GZIP)
            piece = stream.decompress(body, most_bytes - size + 1)
            size += len(piece)
            if size > most_bytes:
                raise facts.PayloadTooLarge(f"The body is over {most_bytes} bytes when inflated")
            if not stream.eof:
                raise facts.Malformed("The gzip body was cut short")
            made.append(piece)
            body = stream.unused_data
    except zlib.error as error:
        raise facts.Malformed("The body is no gzip") from error
    return b"".join(made)


def refusal(error: facts.PromptlakeError, content_type: str) -> Response:
    """Answer an export that was refused: a google.rpc.Status, in JSON beside what all failures here have."""
    plain = response_for(error)
    code = _CODES.get(status_of(error), _INTERNAL)
    headers = {name: value for name, value in plain.headers.items() if name.startswith(("retry-", "x-"))}
    if content_type.partition(";")[0].strip().lower() != PROTOBUF:
        body = {"code": code, **load_json(bytes(plain.body))}
        return JSONResponse(body, plain.status_code, headers=headers)
    said = error.message.encode()[:1000]
    # field 1, a number; field 2, a text
    status = b"\x08" + bytes([code]) + b"\x12" + _varint(len(said)) + said
    return Response(status, plain.status_code, headers=headers, media_type=PROTOBUF)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)
