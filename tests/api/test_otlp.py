"""Traces over OTLP/HTTP: the exporter of OpenTelemetry itself, both encodings, what is refused and how."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import StatusCode
from starlette.testclient import TestClient

from api.app import create_app
from storage.domain.request_logs import LogFilter
from storage.request_logs import scan_request_logs
from storage.settings import Settings
from storage.store import Store
from storage.workspaces import create_key
from tests.conftest import KEY

TRACES = "/v1/traces"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
GZIPPED = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
HI = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
START = 1_767_605_400_000_000_000


def logged(store: Store, workspace_id: int = 1) -> list[dict[str, Any]]:
    wanted = LogFilter(newest_first=False)
    return [row for batch in scan_request_logs(store, workspace_id, wanted) for row in batch.to_pylist()]


def span(number: int = 1, attributes: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    held = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 100,
        **(attributes or {}),
    }
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "chat gpt-4o-mini",
        "startTimeUnixNano": str(START),
        "endTimeUnixNano": START + 1_250_000_000,
        "attributes": [
            {"key": key, "value": any_value(value)} for key, value in held.items() if value is not None
        ],
        **more,
    }


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    if isinstance(value, dict):
        pairs = [{"key": key, "value": any_value(one)} for key, one in value.items()]
        return {"kvlistValue": {"values": pairs}}
    return {"stringValue": value}


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "tour"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}], "newer": 1}


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("compression", [Compression.Gzip, Compression.NoCompression])
def test_the_exporter_of_opentelemetry(store: Store, settings: Settings, compression: Compression) -> None:
    with served(settings) as url:
        exporter = OTLPSpanExporter(f"{url}{TRACES}", headers={"X-API-KEY": KEY}, compression=compression)
        provider = TracerProvider(resource=Resource({"service.name": "tour"}))
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("work"), tracer.start_as_current_span("chat gpt-4o") as call:
            call.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "openai",
                    "gen_ai.request.model": "gpt-4o",
                    "gen_ai.response.finish_reasons": ["stop"],
                    "gen_ai.input.messages": json.dumps(HI),
                }
            )
            call.add_event("gen_ai.choice", {"index": 0, "message": '{"role": "assistant", "content": "Ho"}'})
            call.set_status(StatusCode.ERROR, "it broke")
        refused = OTLPSpanExporter(f"{url}{TRACES}", headers={"X-API-KEY": "no"})
        assert refused.export([call]) is SpanExportResult.FAILURE
        provider.shutdown()
    (row,) = logged(store)
    assert json.loads(row["input"])["messages"][0]["content"] == [{"type": "text", "text": "Hi"}]
    assert json.loads(row["output"])["messages"][0]["content"] == [{"type": "text", "text": "Ho"}]
    assert (row["status"], row["error_message"], row["function_name"]) == ("ERROR", "it broke", "chat gpt-4o")
    metadata = dict(row["metadata"])
    assert metadata["gen_ai.response.finish_reasons"] == '["stop"]'
    assert metadata["service.name"] == "tour"
    assert metadata["trace_id"] == f"{call.get_span_context().trace_id:032x}"
    assert metadata["parent_span_id"]


def test_json_as_the_exporter_of_javascript_sends_it(client: TestClient, store: Store) -> None:
    body = export(span(attributes={"gen_ai.input.messages": HI, "own": {"a": [1, True]}}))
    answer = client.post(TRACES, json=body)
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"] == JSON
    (row,) = logged(store)
    assert json.loads(row["input"])["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    ]
    assert row["price"] == pytest.approx(0.00021)
    assert row["latency_ms"] == 1250
    metadata = dict(row["metadata"])
    assert (metadata["trace_id"], metadata["span_id"]) == (f"{1:032x}", f"{1:016x}")
    assert metadata["own"] == '{"a": [1, true]}'


def test_a_span_that_is_sent_again_is_logged_once(client: TestClient, store: Store, foreign_key: str) -> None:
    for _ in range(2):
        assert client.post(TRACES, json=export(span(1), span(2), span(2))).status_code == 200
    assert len(logged(store)) == 2
    client.post(TRACES, json=export(span(1)), headers={"X-API-KEY": foreign_key})
    assert len(logged(store, 2)) == 1


def test_spans_of_other_work_are_accepted_and_not_kept(client: TestClient, store: Store) -> None:
    other = span(2, {"gen_ai.operation.name": "execute_tool"})
    answer = client.post(TRACES, json=export(span(1), other, other)).json()
    assert answer == {
        "partialSuccess": {"errorMessage": "2 spans record no call of a model and are not kept"}
    }
    assert len(logged(store)) == 1
    managed = span(3, {"promptlayer.request_log.managed": True})
    client.post(TRACES, json=export(managed))
    assert len(logged(store)) == 1


def test_spans_that_cannot_be_logged_are_rejected_and_counted(client: TestClient, store: Store) -> None:
    bad = span(2, startTimeUnixNano="0")
    request = ExportTraceServiceRequest()
    for made in (span(1), bad):
        one = request.resource_spans.add().scope_spans.add().spans.add()
        one.trace_id, one.span_id = bytes.fromhex(made["traceId"]), bytes.fromhex(made["spanId"])
        one.start_time_unix_nano = int(made["startTimeUnixNano"])
        pair = one.attributes.add()
        pair.key, pair.value.string_value = "gen_ai.operation.name", "chat"
    answer = client.post(TRACES, content=request.SerializeToString(), headers={"Content-Type": PROTOBUF})
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTOBUF)
    said = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert said.rejected_spans == 1
    assert "start time" in said.error_message
    assert len(logged(store)) == 1
    as_json = client.post(TRACES, json=export(span(3), span(4, startTimeUnixNano="0"))).json()
    assert as_json["partialSuccess"]["rejectedSpans"] == "1"


def test_a_prompt_that_is_there_is_linked_and_another_is_kept_as_metadata(
    client: TestClient, store: Store
) -> None:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    prompt = {"prompt_template": {"prompt_name": "greet"}, "prompt_version": {"prompt_template": blueprint}}
    client.post("/rest/prompt-templates", json=prompt)
    names = ("promptlayer.prompt.name", "promptlayer.prompt.version")
    spans = [
        span(n, dict(zip(names, said, strict=True))) for n, said in ((1, ("greet", 1)), (2, ("gone", 7)))
    ]
    assert client.post(TRACES, json=export(*spans)).json() == {}
    rows = sorted(logged(store), key=lambda row: dict(row["metadata"])["span_id"])
    assert [(row["prompt_name"], row["prompt_version_number"]) for row in rows] == [
        ("greet", 1),
        (None, None),
    ]
    kept = dict(rows[1]["metadata"])
    assert kept["promptlayer.prompt.name"] == "gone"


def status_said(content: bytes) -> Status:
    return Status.FromString(content)


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"\xff\xff", {"Content-Type": PROTOBUF}, 400),
        (b"{", {"Content-Type": JSON}, 400),
        (b"[]", {"Content-Type": JSON}, 400),
        (b'{"resourceSpans": 7}', {"Content-Type": JSON}, 400),
        (b'{"resourceSpans": [7]}', {"Content-Type": JSON}, 400),
        (json.dumps(export(span(traceId="xyz"))).encode(), {"Content-Type": JSON}, 400),
        (json.dumps(export(span(startTimeUnixNano="-1"))).encode(), {"Content-Type": JSON}, 400),
        (b"no gzip", GZIPPED, 400),
        (gzip.compress(b"x" * 999, mtime=0)[:-9], GZIPPED, 400),
        (gzip.compress(b"", mtime=0) * 70, GZIPPED, 400),
        (b"", {"Content-Type": "text/plain"}, 415),
        (b"", {"Content-Type": ""}, 415),
        (b"", {"Content-Type": PROTOBUF, "Content-Encoding": "zstd"}, 415),
        (b"", {"Content-Type": PROTOBUF, "Content-Length": "10485761"}, 413),
        (b"", {"Content-Type": PROTOBUF, "X-API-KEY": "wrong"}, 401),
    ],
)
def test_what_is_refused_is_refused_as_otlp_wants_it(
    client: TestClient, store: Store, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = client.post(TRACES, content=content, headers=headers)
    assert answer.status_code == status, answer.content
    if headers["Content-Type"] == PROTOBUF:
        assert answer.headers["content-type"] == PROTOBUF
        said = status_said(answer.content)
        assert said.message
        assert said.code
    else:
        assert answer.json()["success"] is False
        assert {"code", "message", "error"} <= set(answer.json())
    assert answer.headers["x-request-id"]
    assert logged(store) == []


def test_a_bomb_is_refused_while_it_is_inflated(client: TestClient) -> None:
    bomb = gzip.compress(b"\x00" * 400_000_000, 9, mtime=0)
    assert len(bomb) < 1_000_000
    headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
    took_s = []
    for _ in range(3):
        started = time.process_time()
        answer = client.post(TRACES, content=bomb, headers=headers)
        took_s.append(time.process_time() - started)
        assert answer.status_code == 413
        assert "inflated" in status_said(answer.content).message
    # inflating all of it takes ten times as long; other threads of this process count, too
    assert min(took_s) < 0.5


MANY = 500_001


@pytest.mark.parametrize(
    ("content", "media"),
    [
        (b"\x0a\x00" * MANY, PROTOBUF),  # groups of nothing
        (ExportTraceServiceRequest(resource_spans=[{"scope_spans": [{"spans": [{}] * MANY}]}]), PROTOBUF),
        (json.dumps({"resourceSpans": [{}] * MANY}).encode(), JSON),
    ],
    ids=["groups", "spans", "json"],
)
def test_exports_of_countless_parts_are_refused(client: TestClient, content: Any, media: str) -> None:
    body = content if isinstance(content, bytes) else content.SerializeToString()
    started = time.process_time()
    assert client.post(TRACES, content=body, headers={"Content-Type": media}).status_code == 413
    assert time.process_time() - started < 3


def test_the_key_may_be_a_bearer_token(client: TestClient, store: Store) -> None:
    del client.headers["X-API-KEY"]
    body = export(span(1))
    for value, status in (
        (f"Bearer {KEY}", 200),
        (f"bearer {KEY}", 200),
        ("Bearer ", 401),
        (f"Basic {KEY}", 401),
        ("Bearer no", 401),
    ):
        assert client.post(TRACES, json=body, headers={"Authorization": value}).status_code == status, value
    assert client.post(TRACES, json=body).status_code == 401
    reader = create_key(store, scopes=["read"])[1]
    assert client.post(TRACES, json=body, headers={"X-API-KEY": reader}).status_code == 403
    # elsewhere the key stands in its header alone
    assert client.post("/log-request", json={}, headers={"Authorization": f"Bearer {KEY}"}).status_code == 401


def test_an_empty_export_is_taken(client: TestClient) -> None:
    answer = client.post(TRACES, content=b"", headers={"Content-Type": PROTOBUF})
    assert (answer.status_code, answer.content) == (200, b"")
    assert client.post(TRACES, json={}).json() == {}
