"""Rows: read page by page, added, deleted."""

from contextlib import ExitStack
from typing import Annotated
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import sheet_path
from api.rendering import PlainJson
from api.routing import guarded_router, needs
from api.schemas.pages import Cursor, LongLimit, Order
from api.schemas.rows import RowsAdd, RowsAddAnswer, RowsAnswer, RowsDelete, RowsDeleted, spell_rows
from storage import row_changes, rows
from storage.domain.errors import Invalid, InvalidCursor, Problem, WrongColumnType
from storage.domain.paging import PageRequest

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}/rows", tags=["rows"])

ColumnIds = Annotated[
    list[str] | None, Query(description="Columns to show; repeated, or separated by commas.")
]


@router.get("", summary="Read rows", response_model=RowsAnswer, responses=errors(InvalidCursor))
@needs("read", path=sheet_path)
def list_rows(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    version_number: Annotated[
        int | None, Query(ge=1, le=2_147_483_647, description="As this version had them.")
    ] = None,
    column_ids: ColumnIds = None,
    cursor: Cursor = None,
    limit: LongLimit = 100,
    order: Order = "asc",
) -> Response:
    """Read rows with their cells, by index.

    Pages of many columns or long values hold fewer rows than asked for: `pagination.limit` says how many.
    """
    with ExitStack() as held:
        found = rows.list_rows(
            store,
            who,
            table_id=table_id,
            sheet_id=sheet_id,
            request=PageRequest(limit, order, cursor),
            version_number=version_number,
            column_ids=_ids(column_ids),
            held=held,
        )
        filters = {"version_number": version_number, "column_ids": column_ids}
        return PlainJson(spell_rows(found, sheet_id, who.workspace_id, filters))


def _ids(given: list[str] | None) -> list[UUID] | None:
    if given is None:
        return None
    try:
        return [UUID(part) for one in given for part in one.split(",")]
    except ValueError as error:
        problem = Problem(("query", "column_ids"), "must be column ids", "uuid_parsing")
        raise Invalid(problem) from error


@router.post("", status_code=201, summary="Add rows", responses=errors(WrongColumnType))
@needs("write:table", path=sheet_path)
def add_rows(
    store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, body: RowsAdd | None = None
) -> RowsAddAnswer:
    """Add up to 1,000 rows at the end, empty or with values of text columns; no version is made of it."""
    asked = body or RowsAdd()
    added = row_changes.add_rows(
        store, who, table_id=table_id, sheet_id=sheet_id, count=asked.count, values=asked.values
    )
    return RowsAddAnswer.of(added)


@router.delete("", summary="Delete rows")
@needs("write:table", path=sheet_path)
def delete_rows(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, body: RowsDelete) -> RowsDeleted:
    """Delete up to 1,000 rows by their places; versions keep them."""
    left = row_changes.delete_rows(
        store, who, table_id=table_id, sheet_id=sheet_id, row_indices=body.row_indices
    )
    return RowsDeleted(message=f"{len(set(body.row_indices))} rows deleted", row_count=left)
