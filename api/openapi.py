"""What the OpenAPI document says of every operation alike: the key, its scope, the failures it may answer."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from api.errors import BodyTimeout, UnsupportedMedia, error_body, status_of
from storage.domain import errors as facts
from storage.domain.drafts import DraftExists, NoDraft

Fact = facts.PromptlakeError
FactKind = type[Fact]

_ERROR_REF = "#/components/schemas/Error"
_KEY_SCHEME = {"ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-KEY"}}
_ERROR_SCHEMA = {
    "title": "Error",
    "description": "The body of every failure.",
    "type": "object",
    "required": ["success", "message", "error"],
    "properties": {
        "success": {"const": False, "type": "boolean"},
        "message": {"type": "string", "description": "A sentence that a person can act on."},
        "error": {"type": "string", "description": "A code that a program can act on."},
        "detail": {
            "type": "array",
            "description": "With 422: each value that does not fit.",
            "items": {
                "type": "object",
                "required": ["loc", "msg", "type"],
                "properties": {
                    "loc": {"type": "array", "items": {"type": "string"}},
                    "msg": {"type": "string"},
                    "type": {"type": "string"},
                },
            },
        },
    },
}
_MISSING = facts.Problem(("body", "title"), "Field required", "missing")
_EXAMPLES: dict[FactKind, Fact] = {
    facts.Unauthorized: facts.Unauthorized("Invalid API key"),
    facts.Forbidden: facts.Forbidden("This API key lacks the scope `write`"),
    facts.NotFound: facts.NotFound("No such id in the workspace of this key"),
    facts.Malformed: facts.Malformed("The body is no valid JSON: expected value at line 1 column 1"),
    facts.InvalidConfig: facts.InvalidConfig("line 2, position 7: a `{` is never closed"),
    facts.InvalidCursor: facts.InvalidCursor("The cursor belongs to another sort, order or filter"),
    facts.WrongColumnType: facts.WrongColumnType("Answer is computed: only text cells are written"),
    facts.DependencyCycle: facts.DependencyCycle("Answer reads Score, which reads Answer"),
    facts.Conflict: facts.Conflict("The name is taken"),
    DraftExists: DraftExists("The dataset group has a draft: save or delete it first"),
    NoDraft: NoDraft("The dataset group has no draft"),
    facts.ImportInProgress: facts.ImportInProgress("Another import writes this sheet"),
    facts.PayloadTooLarge: facts.PayloadTooLarge("The body is over 10485760 bytes"),
    facts.Invalid: facts.Invalid(_MISSING),
    facts.RateLimited: facts.RateLimited(
        "Rate limit exceeded. Please retry later.", retry_after_s=12, limit=10, reset_at_epoch_s=0
    ),
    facts.Unavailable: facts.Unavailable("The catalog cannot be written now (disk full or busy)."),
    BodyTimeout: BodyTimeout("No byte of the body came for 60 seconds"),
    UnsupportedMedia: UnsupportedMedia("Traces are sent as application/x-protobuf or application/json"),
}
_DESCRIPTION = {
    400: "Malformed, or against a rule of the configuration",
    401: "The key is missing, unknown, expired or revoked",
    403: "The key's scope does not allow it",
    404: "Unknown, or of another workspace",
    408: "The body stopped coming",
    409: "In conflict with what exists",
    413: "Too large",
    422: "A value of the wrong shape or out of bounds",
    415: "Of a type that is not read here",
    429: "Too many calls",
    503: "Cannot be done now; `Retry-After` says when to come back",
}
_RETRY_AFTER = {"Retry-After": "Seconds until it may be tried again."}
_HEADERS: dict[int, dict[str, str]] = {
    429: _RETRY_AFTER
    | {
        "X-RateLimit-Limit": "Calls that are allowed in the window.",
        "X-RateLimit-Remaining": "Calls that are left in it: 0.",
        "X-RateLimit-Reset": "When the next call is allowed, in seconds since 1970.",
    },
    503: _RETRY_AFTER,
}


def errors(*kinds: FactKind) -> dict[int | str, dict[str, Any]]:
    """Describe the failures of one route beyond those that all share; for `responses=` of its decorator."""
    responses: dict[int | str, dict[str, Any]] = {}
    for kind in kinds:
        shown = _EXAMPLES[kind]
        status = status_of(shown)
        response = responses.setdefault(status, _response(status))
        response["content"]["application/json"]["examples"][kind.__name__] = {"value": _body(shown)}
    return responses


def streamed_body(shape: type[BaseModel]) -> dict[str, Any]:
    """Describe the body of a route that reads it itself; for `openapi_extra=` of its decorator."""
    schema = shape.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def describe(app: FastAPI) -> None:
    """Let the application's OpenAPI document say of every operation what all share."""
    plain = app.openapi
    finished: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        nonlocal finished
        document = plain()
        if document is not finished:
            _complete(document)
            finished = document
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def operations(document: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Walk the operations of a document: (method, path, operation)."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def _complete(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = _ERROR_SCHEMA
    components["securitySchemes"] = _KEY_SCHEME
    for _, path, operation in operations(document):
        for media in operation.get("requestBody", {}).get("content", {}).values():
            schemas.update(media["schema"].pop("$defs", {}))
        operation["responses"].pop("422", None)
        scope = operation.get("x-scope")
        if scope is None:
            continue
        operation["security"] = [{"ApiKey": []}]
        _add(operation, errors(*_shared(path, operation)))
        needs = f"Needs a key of scope `{scope}`."
        operation["description"] = f"{operation.get('description', '')}\n\n{needs}".strip()


def _shared(path: str, operation: dict[str, Any]) -> list[FactKind]:
    kinds: list[FactKind] = [facts.Unauthorized, facts.Forbidden, facts.Unavailable]
    if "{" in path:
        kinds.append(facts.NotFound)
    if "requestBody" in operation:
        kinds += [facts.Malformed, BodyTimeout, facts.PayloadTooLarge]
    if "requestBody" in operation or "parameters" in operation:
        kinds.append(facts.Invalid)
    if any(one["name"] == "cursor" for one in operation.get("parameters", ())):
        kinds.append(facts.InvalidCursor)
    return kinds


def _add(operation: dict[str, Any], shared: dict[int | str, dict[str, Any]]) -> None:
    """Add responses to those that the operation names itself; the operation's own examples win."""
    for status, response in shared.items():
        own = operation["responses"].setdefault(str(status), response)
        body = own.setdefault("content", {}).setdefault("application/json", {"schema": {"$ref": _ERROR_REF}})
        body["examples"] = response["content"]["application/json"]["examples"] | body.get("examples", {})
    operation["responses"] = dict(sorted(operation["responses"].items()))


def _response(status: int) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": {"$ref": _ERROR_REF}, "examples": {}}
    described: dict[str, Any] = {
        "description": _DESCRIPTION[status],
        "content": {"application/json": body},
    }
    if status in _HEADERS:
        described["headers"] = {
            name: {"description": meaning, "schema": {"type": "integer"}}
            for name, meaning in _HEADERS[status].items()
        }
    return described


def _body(shown: Fact) -> dict[str, Any]:
    if not isinstance(shown, facts.Invalid):
        return error_body(shown.message, shown.code)
    detail = [{"loc": list(p.loc), "msg": p.msg, "type": p.type} for p in shown.problems]
    return error_body(shown.message, shown.code, detail)
