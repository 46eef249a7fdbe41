"""Request logs: record one (E1), read one."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Header, Request, Response
from pydantic_core import to_json
from starlette.routing import Route

from api.deps import OpenStore, Who, service_of
from api.json_body import validate_json
from api.limits import read_body
from api.openapi import errors
from api.routing import GuardedRoute, guarded_router, needs
from api.schemas.request_logs import LOG_REQUEST, LogAnswer, LogRequest, RequestLogAnswer
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import require
from storage.request_logs import LoggedRequest, get_request_log, log_request

router = guarded_router(tags=["request logs"])


async def record(request: Request) -> Response:
    """Check in the one order (key, scope, body, rules), record, answer."""
    service = service_of(request)
    headers = request.headers
    who = await service.authenticator.principal(headers.get("x-api-key"))
    require(who, "ingest")
    raw = await read_body(request, service.settings.max_body_bytes, service.settings.body_idle_s)
    body = validate_json(LOG_REQUEST, raw)
    logged = await log_request(
        service.logs,
        who,
        fields=body.fields(),
        score=body.given_score(),
        idempotency_key=headers.get("idempotency-key"),
    )
    return Response(to_json(_answer(logged)), 201, media_type="application/json")


def _answer(logged: LoggedRequest) -> dict[str, object]:
    return {
        "id": logged.id,
        "request_id": logged.id,
        "prompt_version": logged.prompt_version,
        "status": logged.status,
        "error_type": logged.error_type,
        "error_message": logged.error_message,
    }


class DirectRoute(GuardedRoute):
    """A route that is described by its signature, and answered by `record`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return record


# The framework's own handling costs more than the rest of E1: this route is put before all others and
# answers on the lower layer. The one below is the same call, as the OpenAPI document lists it.
direct = Route("/log-request", record, methods=["POST"])


@needs("ingest", streams_body=True)
def _log_request(
    body: LogRequest,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> LogAnswer:
    raise NotImplementedError


router.add_api_route(
    "/log-request",
    _log_request,
    methods=["POST"],
    status_code=201,
    summary="Log a request",
    description="Records an exchange with a model; it is durable before the answer. Repeating the call with "
    "the same `Idempotency-Key` within 24 hours returns the first answer and records nothing.",
    responses=errors(NotFound, Conflict),
    route_class_override=DirectRoute,
)


@router.get("/api/public/v2/requests/{request_id}", summary="Read a logged request")
@needs("read")
def read_one(store: OpenStore, who: Who, request_id: int) -> RequestLogAnswer:
    return RequestLogAnswer.model_validate(get_request_log(store, who, request_id))
