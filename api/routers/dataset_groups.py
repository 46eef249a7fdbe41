"""Dataset groups: what versions and drafts of datasets belong to. Deprecated for new workflows."""

from typing import Annotated

from fastapi import Query

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import dataset_group_path
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.datasets import GroupAnswer, GroupBody, GroupOut, GroupUpdate
from api.schemas.numbered import NumberedPageOut, PageNumber, PerPage, numbered_page_out
from api.schemas.tables import Done
from storage import dataset_groups
from storage.domain.errors import Conflict, Malformed

router = guarded_router(prefix="/api/public/v2/dataset-groups", tags=["datasets"], deprecated=True)


@router.post("", status_code=201, summary="Create a dataset group", responses=errors(Conflict))
@needs("write:dataset")
def create_group(store: OpenStore, who: Who, body: GroupBody) -> GroupAnswer:
    """Create a group; `create-draft`, `from-file` and `from-filter-params` make its versions."""
    check_workspace_id(who, body.workspace_id)
    group = dataset_groups.create_group(
        store, who, name=body.name, folder_id=body.folder_id, external_ids=body.pairs()
    )
    return GroupAnswer(message="Dataset group created", dataset_group=GroupOut.of(group))


@router.get("", summary="List dataset groups", responses=errors(Malformed))
@needs("read")
def list_groups(
    store: OpenStore,
    who: Who,
    page: PageNumber = 1,
    per_page: PerPage = 30,
    name: Annotated[str | None, Query(description="Any part of the name, in any case.")] = None,
) -> NumberedPageOut[GroupOut]:
    """List groups, the newest first."""
    found = dataset_groups.list_groups(store, who, page=page, per_page=per_page, name=name)
    return numbered_page_out(found, GroupOut.of)


@router.get("/{dataset_group_id}", summary="Read a dataset group")
@needs("read", path=dataset_group_path)
def get_group(store: OpenStore, who: Who, dataset_group_id: int) -> GroupAnswer:
    group = dataset_groups.get_group(store, who, dataset_group_id)
    return GroupAnswer(message=group.name, dataset_group=GroupOut.of(group))


@router.patch("/{dataset_group_id}", summary="Rename or move a dataset group", responses=errors(Conflict))
@needs("write:dataset", path=dataset_group_path)
def change_group(store: OpenStore, who: Who, dataset_group_id: int, body: GroupUpdate) -> GroupAnswer:
    group = dataset_groups.change_group(store, who, dataset_group_id, name=body.name, folder_id=body.folder)
    return GroupAnswer(message="Dataset group updated", dataset_group=GroupOut.of(group))


@router.delete("/{dataset_group_id}", summary="Delete a dataset group")
@needs("write:dataset", path=dataset_group_path)
def delete_group(store: OpenStore, runs: OpenRuns, who: Who, dataset_group_id: int) -> Done:
    """Delete a group with its versions and its draft; work on the draft ends."""
    for operation in dataset_groups.delete_group(store, who, dataset_group_id):
        runs.terminate_soon(operation)
    return Done(message="Dataset group deleted")
