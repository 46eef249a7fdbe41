"""Rendered prompt templates: the call that applications wait for before they ask a model."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from api.deps import Service, service_of
from api.errors import BodyTimeout, response_for
from api.json_body import load_json, validate_value
from api.limits import receive_body
from api.openapi import errors
from api.routing import GuardedRoute, guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.templates import RenderBody, RenderedTemplate
from storage import templates
from storage.domain.errors import (
    DependencyCycle,
    Invalid,
    InvalidConfig,
    Malformed,
    PayloadTooLarge,
    PromptlakeError,
)
from storage.domain.keys import Principal, require
from storage.store import Store

TEMPLATES_PREFIX = "/prompt-templates/"
_BODY: TypeAdapter[RenderBody | None] = TypeAdapter(RenderBody | None)

router = guarded_router(tags=["prompt templates"])


class RenderApp:
    """The call below the framework, whose own handling costs more than finding and filling in a template."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response: Response = await _answer(Request(scope, receive))
        except PromptlakeError as error:
            response = response_for(error)
        await response(scope, receive, send)


async def _answer(request: Request) -> Response:
    """Check in the one order (key, scope, prompt, body, rules), render, answer."""
    service, headers = service_of(request), request.headers
    who = await service.authenticator.principal(headers.get("x-api-key"))
    require(who, "read")
    identifier = request.scope["path"].removeprefix(TEMPLATES_PREFIX)
    answer = await _rendered(service, who, identifier, request.receive, headers.get("content-length", "0"))
    return Response(answer, media_type="application/json")


async def _rendered(
    service: Service, who: Principal, identifier: str, receive: Receive, declared: str
) -> bytes:
    settings = service.settings
    try:
        raw = await receive_body(receive, declared, settings.max_body_bytes, settings.body_idle_s)
    except (PayloadTooLarge, BodyTimeout):
        await run_in_threadpool(templates.check_prompt, service.store, who, identifier)
        raise
    # all that takes time in one trip to another thread: a second one would cost as much as the render
    return await run_in_threadpool(_render, service.store, who, identifier, raw)


def _render(store: Store, who: Principal, identifier: str, raw: bytes) -> bytes:
    try:
        wanted = validate_value(_BODY, load_json(raw)) if raw else None
    except (Malformed, Invalid):
        templates.check_prompt(store, who, identifier)  # an unknown prompt is told before a wrong body
        raise
    wanted = wanted or RenderBody()
    check_workspace_id(who, wanted.workspace_id)
    rendered = templates.render(
        store,
        who,
        identifier,
        number=wanted.version,
        label=wanted.label,
        values=wanted.values,
        provider=wanted.provider,
        model=wanted.model,
        overrides=wanted.model_parameter_overrides,
    )
    return to_json(RenderedTemplate.of_rendered(rendered))


class DescribedRoute(GuardedRoute):
    """A route that is described by its signature; the call itself is answered by `RenderApp`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return _answer


@needs("read", streams_body=True)
def _render_template(identifier: str, body: RenderBody | None = None) -> RenderedTemplate:
    raise NotImplementedError


router.add_api_route(
    "/prompt-templates/{identifier:path}",
    _render_template,
    methods=["POST"],
    summary="Read a prompt template, its variables filled in",
    responses=errors(DependencyCycle, InvalidConfig),
    route_class_override=DescribedRoute,
)
