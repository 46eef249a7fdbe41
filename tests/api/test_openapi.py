"""The OpenAPI document: no operation is listed without what a caller needs to use it."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.openapi import operations

OPEN = {"/health", "/ready"}


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def guarded(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for method, path, operation in operations(document):
        if path not in OPEN:
            yield f"{method.upper()} {path}", operation


def resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def variants(document: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [resolve(document, part) for part in schema.get("anyOf", [schema])]


def test_every_operation_says_what_it_does_answers_and_refuses(document: dict[str, Any]) -> None:
    found = dict(guarded(document))
    assert found
    lacking = []
    for name, operation in found.items():
        responses = operation["responses"]
        wanted = {"401", "403", "503"}
        if "{" in name:
            wanted.add("404")
        if "requestBody" in operation:
            wanted |= {"400", "408", "413", "422"}
        if missing := wanted - set(responses):
            lacking.append(f"{name}: responses {sorted(missing)}")
        lacking += [
            f"{name}: {what}"
            for what, there in {
                "summary": operation.get("summary"),
                "scope": operation.get("x-scope"),
                "key": operation.get("security") == [{"ApiKey": []}],
                "one success": any(status.startswith("2") for status in responses),
            }.items()
            if not there
        ]
        for status, response in responses.items():
            lacking += [
                f"{name}: {status} has no schema or example"
                for media in response.get("content", {}).values()
                if not media.get("schema") or (status >= "400" and not media.get("examples"))
            ]
            if not response.get("content"):
                lacking.append(f"{name}: {status} has no content")
    assert lacking == []


def test_every_body_has_a_schema_and_an_example(document: dict[str, Any]) -> None:
    lacking = []
    for name, operation in guarded(document):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            shapes = variants(document, media["schema"])
            if not ("example" in media or "examples" in media or any("examples" in s for s in shapes)):
                lacking.append(name)
    assert lacking == []


def test_the_probes_need_no_key_and_say_what_they_answer(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        if path in OPEN:
            assert (method, operation.get("security")) == ("get", None)
            for status, response in operation["responses"].items():
                schema = resolve(document, response["content"]["application/json"]["schema"])
                assert schema.get("examples"), f"{path} {status}"


def test_failures_share_one_schema(document: dict[str, Any]) -> None:
    for name, operation in guarded(document):
        for status, response in operation["responses"].items():
            if status >= "400":
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Error"}, f"{name} {status}"
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    for reference in set(references(document)):
        at: Any = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
