"""Routes that check in one order: key, scope, ids of the path, body, then the rules of the verb."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from api.deps import service_of
from api.json_body import keep_json, load_json
from api.limits import read_body
from api.own_workspace import is_untold, leave_out_own
from storage.domain.errors import Malformed, Unauthorized
from storage.domain.keys import Principal, require
from storage.store import Store

PathCheck = Callable[[Store, Principal, Mapping[str, str]], None]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Needs:
    """What a route asks of its caller before its body is read.

    `path` raises NotFound when an id of the path is unknown to the caller's workspace. A route with
    `streams_body` reads its own body; `max_body_bytes` replaces the setting's limit. With `key_in_body` the
    key may stand in the body as `api_key`, so that the body is read first; with `bearer` it may be the token
    of the header Authorization. `deep_json` lets a body be nested as deep as filter groups may be.
    """

    scope: str
    path: PathCheck | None = None
    streams_body: bool = False
    max_body_bytes: int | None = None
    key_in_body: bool = False
    bearer: bool = False
    deep_json: bool = False


def needs(
    scope: str,
    *,
    path: PathCheck | None = None,
    streams_body: bool = False,
    max_body_bytes: int | None = None,
    key_in_body: bool = False,
    bearer: bool = False,
    deep_json: bool = False,
) -> Callable[[Endpoint], Endpoint]:
    """Declare a route's needs; every guarded route must."""

    def declare(endpoint: Endpoint) -> Endpoint:
        declared = Needs(scope, path, streams_body, max_body_bytes, key_in_body, bearer, deep_json)
        vars(endpoint)["__needs__"] = declared
        return endpoint

    return declare


class GuardedRoute(APIRoute):
    """An APIRoute that refuses before it reads."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        scope = cast("Needs", vars(endpoint)["__needs__"]).scope
        self.openapi_extra = {**(self.openapi_extra or {}), "x-scope": scope}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        declared = cast("Needs", vars(self.endpoint)["__needs__"])
        reads = bool(_WITH_BODY & set(self.methods or ())) and not declared.streams_body

        takes_body = self.body_field is not None
        untold = self.body_field is not None and is_untold(self.body_field.field_info.annotation)
        deprecated = bool(self.deprecated)

        async def guarded(request: Request) -> Response:
            service = service_of(request)
            request.state.deprecated = deprecated
            key = await _key_in_body(request) if declared.key_in_body else key_of(request)
            if key is None and declared.bearer:
                key = _bearer_of(request)
            who = await service.authenticator.principal(key)
            require(who, declared.scope)
            request.state.principal = who
            if declared.path:
                await run_in_threadpool(declared.path, service.store, who, request.path_params)
            if reads:
                limit = declared.max_body_bytes or service.settings.max_body_bytes
                if not declared.key_in_body:
                    await read_body(request, limit, service.settings.body_idle_s)
                if takes_body:
                    found = keep_json(request, await request.body(), deep=declared.deep_json)
                    if untold:
                        leave_out_own(found, who)
            return await handle(request)

        return guarded


def key_of(request: Request) -> str | None:
    return request.headers.get("x-api-key")


def _bearer_of(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


async def _key_in_body(request: Request) -> str | None:
    """Return the key of a body, else of the header; a body that cannot be read has none."""
    settings = service_of(request).settings
    body = await read_body(request, settings.max_body_bytes, settings.body_idle_s)
    try:
        found = load_json(body)
    except Malformed:
        found = None
    key = found.get("api_key") if isinstance(found, dict) else None
    if isinstance(key, str) and key:
        return key
    if key_of(request) is None:
        raise Unauthorized("Missing API key: send it in the body as `api_key`, or in the header X-API-KEY")
    return key_of(request)


def guarded_router(**options: Any) -> APIRouter:
    """Make a router whose routes are guarded."""
    return APIRouter(route_class=GuardedRoute, **options)
