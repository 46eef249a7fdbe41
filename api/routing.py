"""Routes that check in one order: key, scope, ids of the path, body, then the rules of the verb."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from api.deps import service_of
from api.json_body import keep_json
from api.limits import read_body
from storage.domain.keys import Principal, require
from storage.store import Store

PathCheck = Callable[[Store, Principal, Mapping[str, str]], None]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Needs:
    """What a route asks of its caller before its body is read.

    `path` raises NotFound when an id of the path is unknown to the caller's workspace. A route with
    `streams_body` reads its own body; `max_body_bytes` replaces the setting's limit.
    """

    scope: str
    path: PathCheck | None = None
    streams_body: bool = False
    max_body_bytes: int | None = None


def needs(
    scope: str,
    *,
    path: PathCheck | None = None,
    streams_body: bool = False,
    max_body_bytes: int | None = None,
) -> Callable[[Endpoint], Endpoint]:
    """Declare a route's needs; every guarded route must."""

    def declare(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)["__needs__"] = Needs(scope, path, streams_body, max_body_bytes)
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

        async def guarded(request: Request) -> Response:
            service = service_of(request)
            who = await service.authenticator.principal(request.headers.get("x-api-key"))
            require(who, declared.scope)
            request.state.principal = who
            if declared.path:
                await run_in_threadpool(declared.path, service.store, who, request.path_params)
            if reads:
                limit = declared.max_body_bytes or service.settings.max_body_bytes
                keep_json(request, await read_body(request, limit, service.settings.body_idle_s))
            return await handle(request)

        return guarded


def guarded_router(**options: Any) -> APIRouter:
    """Make a router whose routes are guarded."""
    return APIRouter(route_class=GuardedRoute, **options)
