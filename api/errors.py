"""The one table from a failure to its HTTP status, and the one body that all failures share."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from storage.domain import errors as facts

log = logging.getLogger("promptlake.api")

STATUS_OF: dict[type[facts.PromptlakeError], int] = {
    facts.Malformed: 400,
    facts.InvalidCursor: 400,
    facts.InvalidConfig: 400,
    facts.WrongColumnType: 400,
    facts.DependencyCycle: 400,
    facts.Unauthorized: 401,
    facts.Forbidden: 403,
    facts.NotFound: 404,
    facts.Conflict: 409,
    facts.PayloadTooLarge: 413,
    facts.Invalid: 422,
    facts.RateLimited: 429,
    facts.Unavailable: 503,
    facts.PromptlakeError: 500,
}

_WRONG_METHOD = 405
_CODE_OF_STATUS = {
    400: "validation_error",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "payload_too_large",
    415: "unsupported_media_type",
    422: "validation_error",
}


class BodyTimeout(facts.PromptlakeError):
    """The caller stopped sending the body."""

    code = "request_timeout"


class UnsupportedMedia(facts.PromptlakeError):
    """The body is of a type or an encoding that is not read there."""

    code = "unsupported_media_type"


STATUS_OF[BodyTimeout] = 408
STATUS_OF[UnsupportedMedia] = 415


def error_body(message: str, code: str, detail: Sequence[Any] | None = None) -> dict[str, Any]:
    """The body of every failure."""
    body: dict[str, Any] = {"success": False, "message": message, "error": code}
    if detail is not None:
        body["detail"] = detail
    return body


def status_of(error: facts.PromptlakeError) -> int:
    return next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)


def response_for(error: facts.PromptlakeError) -> JSONResponse:
    """Render a failure that a caller can cause."""
    detail = None
    if isinstance(error, facts.Invalid):
        detail = [{"loc": list(p.loc), "msg": p.msg, "type": p.type} for p in error.problems]
    body = error_body(error.message, error.code, detail)
    return JSONResponse(body, status_of(error), headers=_headers(error))


def _headers(error: facts.PromptlakeError) -> dict[str, str]:
    if isinstance(error, facts.Unavailable):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, facts.RateLimited):
        return {
            "Retry-After": str(error.retry_after_s),
            "X-RateLimit-Limit": str(error.limit),
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(error.reset_at_epoch_s),
        }
    return {}


# What tells shapes apart that may stand in one place; pydantic names the chosen one in the path of a problem.
_CHOICES = {
    "input": {"chat", "completion"},
    "output": {"chat", "completion"},
    "prompt_template": {"chat", "completion"},
    "source": {"file", "request_logs"},
}


def problems_of(errors: Iterable[Mapping[str, Any]], *within: str) -> list[facts.Problem]:
    """Turn pydantic's errors into problems, told by the path that the caller sees; no value is repeated."""
    return [
        facts.Problem((*within, *_path(error["loc"])), _sentence(error["msg"]), str(error["type"]))
        for error in errors
    ]


def _path(loc: Sequence[Any]) -> list[str]:
    parts = [str(part) for part in loc]
    return [
        part
        for before, part in zip(["", *parts], parts, strict=False)
        if part not in _CHOICES.get(before, frozenset())
    ]


def _sentence(msg: Any) -> str:
    return str(msg).removeprefix("Value error, ")


async def handle_fact(_request: Request, error: Exception) -> Response:
    """Handler of every PromptlakeError."""
    if not isinstance(error, facts.PromptlakeError):
        raise error
    return response_for(error)


async def handle_validation(_request: Request, error: Exception) -> Response:
    """Handler of FastAPI's validation errors: broken JSON is 400, a wrong shape 422."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", "")
        return response_for(facts.Malformed(f"The body is no valid JSON: {reason}"))
    return response_for(facts.Invalid(*problems_of(error.errors())))


async def handle_http(request: Request, error: Exception) -> Response:
    """Handler of the framework's own refusals (unknown path, wrong method)."""
    if not isinstance(error, HTTPException):
        raise error
    path = getattr(request.scope.get("route"), "path", None)
    if error.status_code == _WRONG_METHOD and path in request.app.state.methods:
        # the framework names the methods of one route, and a path may have several
        return wrong_method(request.app.state.methods[path])
    code = _CODE_OF_STATUS.get(error.status_code, "validation_error")
    return JSONResponse(
        error_body(f"{error.detail}", code), error.status_code, headers=dict(error.headers or {})
    )


def wrong_method(allowed: Iterable[str]) -> JSONResponse:
    """The answer to a method that the path does not take."""
    body = error_body("Method Not Allowed", _CODE_OF_STATUS[_WRONG_METHOD])
    return JSONResponse(body, _WRONG_METHOD, headers={"Allow": ", ".join(sorted(allowed))})


def internal_error(request_id: str) -> JSONResponse:
    """The answer to a failure of our own; what happened stands in the log under the request id."""
    return JSONResponse(error_body(f"Internal error; request {request_id}", "internal_error"), 500)
