"""Workflows: saved as versions, listed (E27), read, deleted. Running them is not part of this service.

Names hold slashes: fixed suffixes come first, so a workflow whose name ends in `/labels` is read by its id.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.moments import LastMoment, Moment
from api.schemas.numbered import NumberedPageOut, PageNumber, PerPage, numbered_page_out
from api.schemas.pages import Order
from api.schemas.tables import Done
from api.schemas.workflows import (
    WorkflowBody,
    WorkflowLabelEntry,
    WorkflowLabelList,
    WorkflowOut,
    WorkflowVersionOut,
)
from storage import workflows
from storage.domain.errors import Conflict, Malformed, NotFound
from storage.domain.external_ids import external_pair
from storage.domain.keys import Principal
from storage.domain.prompts import MAX_INTEGER
from storage.domain.workflows import WorkflowQuery, WorkflowSort
from storage.store import Store


def _check_workflow(store: Store, who: Principal, path: Mapping[str, str]) -> None:
    workflows.check_workflow(store, who, path["workflow"])


router = guarded_router(tags=["workflows"])


@router.post(
    "/rest/workflows",
    status_code=201,
    summary="Save a version of a workflow",
    description="Makes a workflow, or the next version of the one that is named. Labels are created or moved "
    "to the new version. Nodes, edges and all further keys are kept as sent; a version never changes.",
    responses=errors(Conflict, NotFound),
)
@needs("write:workflow")
def save_workflow(store: OpenStore, who: Who, body: WorkflowBody) -> WorkflowVersionOut:
    check_workspace_id(who, body.workspace_id)
    return WorkflowVersionOut.of(workflows.save_workflow(store, who, body.saved()))


@router.get("/workflows", summary="List workflows", responses=errors(Malformed))
@needs("read")
def list_workflows(
    store: OpenStore,
    who: Who,
    page: PageNumber = 1,
    per_page: PerPage = 30,
    created_by_email: Annotated[str | None, Query(description="Only those that this user made.")] = None,
    created_after: Annotated[Moment | None, Query(description="Inclusive; without zone: UTC.")] = None,
    created_before: Annotated[LastMoment | None, Query(description="Inclusive, also a day alone.")] = None,
    updated_after: Annotated[Moment | None, Query(description="Inclusive; without zone: UTC.")] = None,
    updated_before: Annotated[LastMoment | None, Query(description="Inclusive, also a day alone.")] = None,
    external_source: Annotated[str | None, Query(description="Only with `external_id`.")] = None,
    external_id: Annotated[str | None, Query(description="Only with `external_source`.")] = None,
    sort_by: WorkflowSort = "created_at",
    sort_order: Order = "desc",
    workspace_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
) -> NumberedPageOut[WorkflowOut]:
    check_workspace_id(who, workspace_id)
    query = WorkflowQuery(
        created_by_email=created_by_email,
        created_after=created_after,
        created_before=created_before,
        updated_after=updated_after,
        updated_before=updated_before,
        external_id=external_pair(external_source, external_id),
        sort_by=sort_by,
        sort_order=sort_order,
    )
    found = workflows.list_workflows(store, who, query, page=page, per_page=per_page)
    return numbered_page_out(found, WorkflowOut.of)


@router.get("/workflows/{workflow:path}/labels", summary="List the release labels of a workflow")
@needs("read", path=_check_workflow)
def list_labels(store: OpenStore, who: Who, workflow: str) -> WorkflowLabelList:
    labels = workflows.list_workflow_labels(store, who, workflow)
    return WorkflowLabelList(release_labels=[WorkflowLabelEntry.of(label) for label in labels])


@router.get("/workflows/{workflow:path}", summary="Read a workflow by id or name")
@needs("read", path=_check_workflow)
def get_workflow(
    store: OpenStore,
    who: Who,
    workflow: str,
    version: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description="Default: the latest.")] = None,
    label: Annotated[str | None, Query(min_length=1, max_length=512)] = None,
) -> WorkflowVersionOut:
    return WorkflowVersionOut.of(workflows.get_workflow(store, who, workflow, number=version, label=label))


@router.delete("/workflows/{workflow:path}", summary="Delete a workflow")
@needs("write:workflow", path=_check_workflow)
def delete_workflow(store: OpenStore, who: Who, workflow: str) -> Done:
    """Delete a workflow with all its versions; its name and external ids are free again."""
    workflows.delete_workflow(store, who, workflow)
    return Done(message="Workflow deleted")
