"""Tracking: what is said of a logged request later, scores (E2), metadata, prompt and group."""

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.tables import Done
from api.schemas.tracking import (
    CreateGroup,
    GroupCreated,
    TrackGroup,
    TrackMetadata,
    TrackPrompt,
    TrackScore,
)
from storage import tracking
from storage.domain.errors import NotFound

router = guarded_router(prefix="/rest", tags=["tracking"], responses=errors(NotFound))


@router.post("/track-score", summary="Score a request")
@needs("ingest")
def track_score(store: OpenStore, who: Who, body: TrackScore) -> Done:
    """One value per request and name; a repeat replaces it. Without a name it is `default`."""
    tracking.track_score(store, who, body.request_id, body.value())
    return Done(message="Score tracked")


@router.post("/track-metadata", summary="Add metadata to a request")
@needs("ingest")
def track_metadata(store: OpenStore, who: Who, body: TrackMetadata) -> Done:
    """Keys are added to those that the request has; the same key replaces."""
    tracking.track_metadata(store, who, body.request_id, body.metadata)
    return Done(message="Metadata tracked")


@router.post("/track-prompt", summary="Link a request to its prompt")
@needs("ingest")
def track_prompt(store: OpenStore, who: Who, body: TrackPrompt) -> Done:
    """By `prompt_id` or `prompt_name`, with a version or the label that names it now; a repeat replaces."""
    tracking.track_prompt(
        store,
        who,
        body.request_id,
        prompt_name=body.prompt_name,
        prompt_id=body.prompt_id,
        version_number=body.version,
        label=body.label,
        input_variables=body.prompt_input_variables,
    )
    return Done(message="Prompt tracked")


@router.post("/create-group", status_code=201, summary="Create a group of requests")
@needs("ingest")
def create_group(store: OpenStore, who: Who, body: CreateGroup | None = None) -> GroupCreated:  # noqa: ARG001 - read to be checked
    return GroupCreated(id=tracking.create_group(store, who))


@router.post("/track-group", summary="Put a request into a group")
@needs("ingest")
def track_group(store: OpenStore, who: Who, body: TrackGroup) -> Done:
    """The group is kept in the request's metadata as `group_id`, where it can be searched for."""
    tracking.track_group(store, who, body.request_id, body.group_id)
    return Done(message="Group tracked")
