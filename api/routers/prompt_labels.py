"""Release labels by their ids: created at a version, moved, deleted."""

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import label_path, prompt_path
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.prompt_labels import LabelAnswer, LabelCreate, LabelMove
from api.schemas.tables import Done
from storage import prompt_labels
from storage.domain.errors import Conflict, DependencyCycle, InvalidConfig, NotFound

router = guarded_router(tags=["prompt templates"])


@router.post(
    "/prompts/{prompt_id}/label",
    status_code=201,
    summary="Create a release label",
    responses=errors(Conflict, DependencyCycle, InvalidConfig, NotFound),
)
@needs("write:prompt", path=prompt_path)
def create_label(store: OpenStore, who: Who, prompt_id: int, body: LabelCreate) -> LabelAnswer:
    """A label that the prompt has already is 409: move that one."""
    check_workspace_id(who, body.workspace_id)
    label = prompt_labels.create_label(
        store, who, prompt_id, name=body.name, version_number=body.prompt_version_number
    )
    return LabelAnswer.of(label, "Release label created")


@router.patch(
    "/prompt-labels/{label_id}",
    summary="Move a release label",
    responses=errors(DependencyCycle, InvalidConfig, NotFound),
)
@needs("write:prompt", path=label_path)
def move_label(store: OpenStore, who: Who, label_id: int, body: LabelMove) -> LabelAnswer:
    """Point it at another version of its prompt; it keeps its id."""
    check_workspace_id(who, body.workspace_id)
    label = prompt_labels.move_label(store, who, label_id, version_number=body.prompt_version_number)
    return LabelAnswer.of(label, f"Release label at version {label.prompt_version_number}")


@router.delete("/prompt-labels/{label_id}", summary="Delete a release label", responses=errors(Conflict))
@needs("write:prompt", path=label_path)
def delete_label(store: OpenStore, who: Who, label_id: int) -> Done:
    """The version stays. A label by which versions in use of other prompts include this one stays: 409."""
    prompt_labels.delete_label(store, who, label_id)
    return Done(message="Release label deleted")
