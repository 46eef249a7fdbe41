"""A client that takes the OpenAPI document at its word: each answer must be one that it describes."""

import json
import re
from functools import cache
from typing import Any

import httpx2
import jsonschema_rs
from starlette.testclient import TestClient

from api.openapi import operations

_NO_SUCH_METHOD, _SERVER_FAILURE = 405, 500


class DescribedClient(TestClient):
    """Checks of every answer that its status is described, and that a JSON body fits the schema."""

    def request(self, method: Any, url: Any, **options: Any) -> httpx2.Response:
        answer = super().request(method, url, **options)
        complaint = complaint_of(self.app, answer)
        assert complaint is None, f"{method} {answer.request.url.path} {answer.status_code}: {complaint}"
        return answer


def complaint_of(app: Any, answer: httpx2.Response) -> str | None:
    """Say how an answer differs from what is described; None: it does not, or nothing is described."""
    if "x-request-id" not in answer.headers:
        return "no X-Request-Id"
    found = _Described.of(app).find(answer.request.method.lower(), answer.request.url.path)
    # a method that a path does not take is no operation
    if found is None or answer.status_code == _NO_SUCH_METHOD or answer.status_code >= _SERVER_FAILURE:
        return None
    path, responses = found
    status, media = str(answer.status_code), answer.headers.get("content-type", "").partition(";")[0]
    if status not in responses:
        return f"the status is none of {path}: {', '.join(responses)}"
    content = responses[status].get("content", {})
    # a failure of OTLP may be in the encoding of the call, which is described in words
    if media not in content and media != "application/x-protobuf":
        return f"{media} is none of {path}: {', '.join(content)}"
    if media != "application/json":
        return None
    validator = _Described.of(app).validator(answer.request.method.lower(), path, status)
    problem = next(iter(validator.iter_errors(json.loads(answer.content))), None)
    return problem and f"{problem.instance_path}: {problem.message[:500]}"


class _Described:
    """The document of an application, looked up by paths as they are called."""

    _one: "_Described | None" = None

    def __init__(self, app: Any) -> None:
        # through JSON: in Python one value may stand in several places
        self.document: dict[str, Any] = json.loads(json.dumps(app.openapi()))
        self._operations = [
            (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), method, path, operation)
            for method, path, operation in operations(self.document)
        ]
        # names of prompts and workflows hold slashes
        self._wide = [
            (re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(path))), method, path, operation)
            for method, path, operation in operations(self.document)
        ]
        self.find = cache(self._find)
        self.validator = cache(self._validator)

    @classmethod
    def of(cls, app: Any) -> "_Described":
        # all applications have the same routes
        if cls._one is None:
            cls._one = cls(app)
        return cls._one

    def _find(self, method: str, path: str) -> tuple[str, dict[str, Any]] | None:
        for known in (self._operations, self._wide):
            # fixed paths come before those with parameters
            for pattern, its_method, its_path, operation in sorted(known, key=lambda one: "{" in one[2]):
                if its_method == method and pattern.fullmatch(path):
                    return its_path, operation["responses"]
        return None

    def _validator(self, method: str, path: str, status: str) -> Any:
        schema = self.document["paths"][path][method]["responses"][status]["content"]["application/json"][
            "schema"
        ]
        return jsonschema_rs.validator_for({**schema, "components": self.document["components"]})
