"""Datasets: listed (E25), read with their rows, deleted. Deprecated for new workflows."""

from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from api.deps import OpenRuns, OpenStore, Who
from api.openapi import errors
from api.paths import dataset_path
from api.rendering import PlainJson
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.datasets import DatasetAnswer, DatasetList, DatasetOut, DatasetRowsAnswer, spell_dataset_rows
from api.schemas.moments import LastMoment, Moment
from api.schemas.pages import Cursor, LongLimit, Order, Pagination
from api.schemas.tables import Done
from storage import datasets
from storage.domain.datasets import DatasetQuery, DatasetSort, DatasetStatus, LinkKind
from storage.domain.errors import InvalidCursor, Malformed
from storage.domain.external_ids import external_pair
from storage.domain.numbered_pages import HIGHEST_PAGE
from storage.domain.paging import PageRequest
from storage.domain.prompts import MAX_INTEGER

router = guarded_router(prefix="/api/public/v2/datasets", tags=["datasets"], deprecated=True)

Id = Annotated[int | None, Query(ge=1, le=MAX_INTEGER)]
_LINKED = "Only those whose filter names it."


@router.get("", summary="List datasets", responses=errors(Malformed))
@needs("read")
def list_datasets(
    store: OpenStore,
    who: Who,
    dataset_group_id: Id = None,
    prompt_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description=_LINKED)] = None,
    prompt_version_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description=_LINKED)] = None,
    prompt_label_id: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description=_LINKED)] = None,
    report_id: Annotated[
        int | None, Query(ge=1, le=MAX_INTEGER, description="Used by it, or by a run of it.")
    ] = None,
    workspace_id: Id = None,
    name: Annotated[str | None, Query(description="Any part of the group's name, in any case.")] = None,
    status: DatasetStatus = "active",
    page: Annotated[int, Query(ge=1, le=HIGHEST_PAGE)] = 1,
    per_page: Annotated[int, Query(ge=1, le=100)] = 10,
    created_by_email: Annotated[str | None, Query(description="Only those that this user made.")] = None,
    created_after: Annotated[Moment | None, Query(description="Inclusive; without zone: UTC.")] = None,
    created_before: Annotated[LastMoment | None, Query(description="Inclusive, also a day alone.")] = None,
    updated_after: Annotated[Moment | None, Query(description="Inclusive; without zone: UTC.")] = None,
    updated_before: Annotated[LastMoment | None, Query(description="Inclusive, also a day alone.")] = None,
    external_source: Annotated[str | None, Query(description="Only with `external_id`.")] = None,
    external_id: Annotated[str | None, Query(description="Only with `external_source`.")] = None,
    sort_by: DatasetSort = "created_at",
    sort_order: Order = "desc",
) -> DatasetList:
    """List versions and drafts; ties go by id in the same direction."""
    check_workspace_id(who, workspace_id)
    links: dict[LinkKind, int | None] = {
        "prompt": prompt_id,
        "prompt_version": prompt_version_id,
        "prompt_label": prompt_label_id,
    }
    query = DatasetQuery(
        group_id=dataset_group_id,
        links=tuple((kind, one) for kind, one in links.items() if one is not None),
        report_id=report_id,
        name=name,
        status=status,
        created_by_email=created_by_email,
        created_after=created_after,
        created_before=created_before,
        updated_after=updated_after,
        updated_before=updated_before,
        external_id=external_pair(external_source, external_id),
        sort_by=sort_by,
        sort_order=sort_order,
    )
    return DatasetList.of(datasets.list_datasets(store, who, query, page=page, per_page=per_page))


@router.get("/{dataset_id}", summary="Read a dataset")
@needs("read", path=dataset_path)
def get_dataset(store: OpenStore, runs: OpenRuns, who: Who, dataset_id: int) -> DatasetAnswer:
    """Read a version or a draft; one whose work failed is gone."""
    found = datasets.get_dataset(store, who, dataset_id)
    if found.operation is not None and runs.refresh(found.operation) != found.operation:
        found = datasets.get_dataset(store, who, dataset_id)
    return DatasetAnswer(dataset=DatasetOut.of(found.dataset))


@router.get(
    "/{dataset_id}/rows",
    summary="Read the rows of a dataset",
    response_model=DatasetRowsAnswer,
    responses=errors(InvalidCursor),
)
@needs("read", path=dataset_path)
def list_rows(
    store: OpenStore,
    who: Who,
    dataset_id: int,
    cursor: Cursor = None,
    limit: LongLimit = 100,
    order: Order = "asc",
) -> Response:
    """Read rows by index, values by title; long values make a page shorter: `pagination.limit` says how."""
    request = PageRequest(limit, order, cursor)
    with ExitStack() as held:
        found = datasets.list_dataset_rows(store, who, dataset_id, request=request, held=held)
        answer: dict[str, Any] = {
            **spell_dataset_rows(found),
            "dataset_id": dataset_id,
            "pagination": Pagination.of(found.page).model_dump(),
            "count": len(found.page.items),
        }
        return PlainJson(answer)


@router.delete("/{dataset_id}", summary="Delete a dataset")
@needs("write:dataset", path=dataset_path)
def delete_dataset(store: OpenStore, runs: OpenRuns, who: Who, dataset_id: int) -> Done:
    """Delete a version, which `status=deleted` lists, or remove a draft for good."""
    for operation in datasets.delete_dataset(store, who, dataset_id):
        runs.terminate_soon(operation)
    return Done(message="Dataset deleted")
