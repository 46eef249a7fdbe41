"""The paths of older client libraries: the key stands in the body as `api_key`, success is 200."""

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from api.deps import OpenStore, Who, service_of
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.tables import Done
from api.schemas.tracked_calls import TrackedRequest, TrackRequest
from api.schemas.tracking import (
    GroupCreated,
    LegacyCreateGroup,
    LegacyGroup,
    LegacyMetadata,
    LegacyPrompt,
    LegacyScore,
)
from storage import tracking
from storage.domain.errors import NotFound
from storage.request_logs import log_request

router = guarded_router(tags=["legacy"], responses=errors(NotFound))


@router.post("/track-request", summary="Log a call that a client library recorded (key in the body)")
@needs("ingest", key_in_body=True)
async def track_request(request: Request, store: OpenStore, who: Who, body: TrackRequest) -> TrackedRequest:
    """The arguments of the call and the answer of OpenAI or Anthropic become a logged request.

    Its tokens are those of the answer, its price that of the maintained table (0: the model is not in it).
    Other providers are read as far as they look alike.
    """
    log = await run_in_threadpool(body.log)
    if body.group_id is not None:
        await run_in_threadpool(tracking.check_group, store, who, body.group_id)
    logged = await log_request(service_of(request).logs, who, fields=log.fields(), score=log.given_score())
    return TrackedRequest(request_id=logged.id, prompt_blueprint=logged.prompt_version)


@router.post("/library-track-score", summary="Score a request (key in the body)")
@needs("ingest", key_in_body=True)
def track_score(store: OpenStore, who: Who, body: LegacyScore) -> Done:
    """As `POST /rest/track-score`."""
    tracking.track_score(store, who, body.request_id, body.value())
    return Done(message="Score tracked")


@router.post("/library-track-metadata", summary="Add metadata to a request (key in the body)")
@needs("ingest", key_in_body=True)
def track_metadata(store: OpenStore, who: Who, body: LegacyMetadata) -> Done:
    """As `POST /rest/track-metadata`."""
    tracking.track_metadata(store, who, body.request_id, body.metadata)
    return Done(message="Metadata tracked")


@router.post("/library-track-prompt", summary="Link a request to its prompt (key in the body)")
@needs("ingest", key_in_body=True)
def track_prompt(store: OpenStore, who: Who, body: LegacyPrompt) -> Done:
    """As `POST /rest/track-prompt`; a version wins over a label."""
    tracking.track_prompt(
        store,
        who,
        body.request_id,
        prompt_name=body.prompt_name,
        prompt_id=body.prompt_id,
        version_number=body.version,
        label=body.label if body.version is None else None,
        input_variables=body.prompt_input_variables,
    )
    return Done(message="Prompt tracked")


@router.post("/create-group", summary="Create a group of requests (key in the body)")
@needs("ingest", key_in_body=True)
def create_group(store: OpenStore, who: Who, body: LegacyCreateGroup) -> GroupCreated:  # noqa: ARG001 - read to be checked
    return GroupCreated(id=tracking.create_group(store, who))


@router.post("/track-group", summary="Put a request into a group (key in the body)")
@needs("ingest", key_in_body=True)
def track_group(store: OpenStore, who: Who, body: LegacyGroup) -> Done:
    """As `POST /rest/track-group`."""
    tracking.track_group(store, who, body.request_id, body.group_id)
    return Done(message="Group tracked")
