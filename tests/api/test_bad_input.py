"""Every operation of the OpenAPI document, called with what nobody should send: refused in one shape."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from api.openapi import operations
from tests.api.test_isolation import MAKERS, Ids

IDS = [
    "0",
    "-1",
    str(2**63),
    "9" * 400,
    "a",
    "\x00",
    "ünï",
    "c/d",
    " ",
    "x" * 3_000,
    "null",
    "1.5",
    "%",
    "🙂",
]
DEEP = b"[" * 2_000 + b"]" * 2_000
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"1",
    b"{}",
    DEEP,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b"NaN",
    b'{"title": 1e999}',
    b'{"title": "\\ud800"}',
    b'"\xff\xfe"',
    b'{"": null}',
    b"PK\x03\x04 this is a zip",
]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def ids(client: TestClient) -> Ids:
    made: Ids = {}
    for name, make in MAKERS.items():
        made[name] = str(make(client, made))
    return made


def url_of(path: str, ids: Ids, **other: str) -> str:
    values = ids | other
    return re.sub(r"{(\w+)[^}]*}", lambda name: quote(values[name[1]], safe=""), path)


def operations_of(client: TestClient) -> list[tuple[str, str, dict[str, Any]]]:
    document = client.get("/openapi.json").json()
    return [found for found in operations(document) if "x-scope" in found[2]]


def complaint(method: str, url: str, answer: Any) -> str | None:
    """Say what is wrong with an answer to bad input; None when it is a refusal in the one shape."""
    place = f"{method} {url[:120]}: {answer.status_code} {answer.text[:200]}"
    if not 400 <= answer.status_code < 500:
        return place
    body = answer.json()
    shape = body.get("success") is False and isinstance(body.get("message"), str) and body.get("error")
    return None if shape and body["message"] else f"{place} (not the one shape)"


def test_ids_that_nobody_gave_out_are_refused(client: TestClient, ids: Ids) -> None:
    wrong = []
    for method, path, _ in operations_of(client):
        for name in re.findall(r"{(\w+)", path):
            for value in IDS:
                url = url_of(path, ids, **{name: value})
                answer = client.request(method, url, content=b"{}", headers=JSON)
                wrong.append(complaint(method, url, answer))
    assert [place for place in wrong if place] == []


def test_bodies_that_fit_nothing_are_refused(client: TestClient, ids: Ids) -> None:
    wrong = []
    for method, path, operation in operations_of(client):
        if "requestBody" not in operation:
            continue
        for body in BODIES:
            answer = client.request(method, url_of(path, ids), content=body, headers=JSON)
            if answer.status_code >= 500:
                wrong.append(f"{method} {path} {body[:20]!r}: {answer.status_code} {answer.text[:100]}")
            elif answer.status_code >= 400:
                wrong.append(complaint(method, path, answer))
    assert [place for place in wrong if place] == []


def values_of(schema: dict[str, Any]) -> Iterator[str]:
    yield from ("", "\x00", "x" * 5_000, "-1", "0", str(2**63), "1e400", "nan", "[]", "'; --", "🙂", "\\")
    for part in schema.get("anyOf", [schema]):
        if part.get("type") == "integer":
            yield from (str(part.get("minimum", 0) - 1), str(part.get("maximum", 2**62) + 1))


def test_queries_that_fit_nothing_are_no_failure_of_ours(client: TestClient, ids: Ids) -> None:
    wrong = []
    for method, path, operation in operations_of(client):
        for parameter in operation.get("parameters", []):
            if parameter["in"] != "query":
                continue
            for value in values_of(parameter["schema"]):
                answer = client.request(method, url_of(path, ids), params={parameter["name"]: value})
                if answer.status_code >= 500:
                    wrong.append(f"{method} {path} {parameter['name']}={value[:20]!r}: {answer.text[:100]}")
                elif answer.status_code >= 400 and (place := complaint(method, path, answer)):
                    wrong.append(place)
    assert wrong == []


def fields_of(document: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    if "$ref" in schema:
        return fields_of(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return [field for part in schema["anyOf"] for field in fields_of(document, part)]
    return list(schema.get("properties", {}))


def test_fields_of_another_type_or_size_are_no_failure_of_ours(client: TestClient, ids: Ids) -> None:
    values: list[Any] = [
        2**63,
        -(2**70),
        1.5,
        True,
        "",
        "x" * 2_000,
        "\x00",
        [],
        [[]],
        {},
        {"a": {}},
        [2**70],
        None,
    ]
    document = client.get("/openapi.json").json()
    wrong = []
    for method, path, operation in operations_of(client):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            for field in fields_of(document, media["schema"]):
                for value in values:
                    url = url_of(path, ids)
                    answer = client.request(method, url, content=json.dumps({field: value}), headers=JSON)
                    if answer.status_code >= 500:
                        wrong.append(f"{method} {path} {field}={str(value)[:20]}: {answer.text[:100]}")
                    elif answer.status_code >= 400 and (place := complaint(method, path, answer)):
                        wrong.append(place)
    assert wrong == []
