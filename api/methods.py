"""Which methods a path takes: a path without parameters is never read as an id of its neighbour's."""

from collections.abc import Iterable, Mapping

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import wrong_method

Methods = Mapping[str, frozenset[str]]


def methods_by_path(routers: Iterable[APIRouter]) -> Methods:
    """Return the methods of each path as routes spell it, all of its routes together."""
    found: dict[str, frozenset[str]] = {}
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                found[route.path] = found.get(route.path, frozenset()) | frozenset(route.methods or ())
    return found


class FixedPaths:
    """ASGI middleware: `GET .../requests/search` is a wrong method, not a request whose id is `search`."""

    def __init__(self, app: ASGIApp, methods: Methods) -> None:
        self.app = app
        self._methods = {path: allowed for path, allowed in methods.items() if "{" not in path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = self._methods.get(scope["path"]) if scope["type"] == "http" else None
        if allowed is None or scope["method"] in allowed:
            await self.app(scope, receive, send)
        else:
            await wrong_method(allowed)(scope, receive, send)
