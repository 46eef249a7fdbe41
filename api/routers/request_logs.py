"""Request logs: record one (E1), read one."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import Header, Request, Response
from pydantic_core import to_json
from starlette.types import Receive, Scope, Send

from api.deps import OpenStore, Service, Who, service_of
from api.errors import response_for
from api.json_body import validate_json
from api.limits import receive_body
from api.openapi import errors
from api.paths import request_path
from api.routing import GuardedRoute, guarded_router, needs
from api.schemas.request_logs import LOG_REQUEST, DeletedLogsAnswer, LogAnswer, LogRequest, RequestLogAnswer
from api.schemas.request_search import DeleteLogsBody
from storage.domain.errors import Conflict, NotFound, PromptlakeError, Unavailable
from storage.domain.keys import require
from storage.log_deletion import delete_log, delete_matching
from storage.request_logs import LoggedRequest, get_request_log, log_request

LOG_REQUEST_PATH = "/log-request"
_READ = frozenset({b"x-api-key", b"content-length", b"idempotency-key"})

router = guarded_router(tags=["request logs"])


class LogRequestApp:
    """E1 below the framework, whose own handling costs more than the rest of the call."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in _READ}
        try:
            answer = await _record(scope["app"].state.service, headers, receive)
        except PromptlakeError as error:
            await response_for(error)(scope, receive, send)
            return
        length = str(len(answer)).encode()
        start = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 201, "headers": start})
        await send({"type": "http.response.body", "body": answer})


async def _record(service: Service, headers: Mapping[bytes, str], receive: Receive) -> bytes:
    """Check in the one order (key, scope, body, rules), record, answer."""
    who = await service.authenticator.principal(headers.get(b"x-api-key"))
    require(who, "ingest")
    settings = service.settings
    declared = headers.get(b"content-length", "0")
    raw = await receive_body(receive, declared, settings.max_body_bytes, settings.body_idle_s)
    body = validate_json(LOG_REQUEST, raw)
    logged = await log_request(
        service.logs,
        who,
        fields=body.fields(),
        score=body.given_score(),
        idempotency_key=headers.get(b"idempotency-key"),
    )
    return to_json(_answer(logged))


def _answer(logged: LoggedRequest) -> dict[str, object]:
    return {
        "id": logged.id,
        "request_id": logged.id,
        "prompt_version": logged.prompt_version,
        "status": logged.status,
        "error_type": logged.error_type,
        "error_message": logged.error_message,
    }


class DescribedRoute(GuardedRoute):
    """A route that is described by its signature; the call itself is answered by `LogRequestApp`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def handle(request: Request) -> Response:
            headers = {name: value.decode("latin-1") for name, value in request.headers.raw if name in _READ}
            answer = await _record(service_of(request), headers, request.receive)
            return Response(answer, 201, media_type="application/json")

        return handle


@needs("ingest", streams_body=True)
def _log_request(
    body: LogRequest,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=255)] = None,
) -> LogAnswer:
    raise NotImplementedError


router.add_api_route(
    LOG_REQUEST_PATH,
    _log_request,
    methods=["POST"],
    status_code=201,
    summary="Log a request",
    description="Records an exchange with a model; it is durable before the answer. Repeating the call with "
    "the same `Idempotency-Key` within 24 hours returns the first answer and records nothing.",
    responses=errors(NotFound, Conflict),
    route_class_override=DescribedRoute,
)


@router.get("/api/public/v2/requests/{request_id}", summary="Read a logged request")
@needs("read", path=request_path)
def read_one(store: OpenStore, who: Who, request_id: int) -> RequestLogAnswer:
    return RequestLogAnswer.model_validate(get_request_log(store, who, request_id))


@router.delete(
    "/api/public/v2/requests/{request_id}",
    summary="Delete a logged request",
    description="It is gone from every read at once, and from the files within a day.",
)
@needs("write", path=request_path)
def delete_one(store: OpenStore, who: Who, request_id: int) -> DeletedLogsAnswer:
    delete_log(store, who, request_id)
    return DeletedLogsAnswer(deleted_count=1)


@router.post(
    "/api/public/v2/requests/delete",
    summary="Delete logged requests",
    description="Those that match a filter group; all when it is empty. They are gone from every read at "
    "once, and from the files within a day.",
    responses=errors(Unavailable),
)
@needs("write", deep_json=True)
def delete_matching_logs(store: OpenStore, who: Who, body: DeleteLogsBody) -> DeletedLogsAnswer:
    return DeletedLogsAnswer(deleted_count=delete_matching(store, who, body.filter_group.group))
