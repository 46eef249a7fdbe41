"""Cells: get (E18), edit."""

from uuid import UUID

from starlette.responses import Response

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import cell_path, form_only
from api.rendering import PlainJson
from api.routing import guarded_router, needs
from api.schemas.cells import CellAnswer, CellEditBody, CellEdited, spell_cell
from storage import cells
from storage.domain.errors import WrongColumnType

router = guarded_router(
    prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}/cells/{cell_id}", tags=["cells"]
)


@router.get("", summary="Get a cell", response_model=CellAnswer)
@needs("read", path=form_only("table_id", "sheet_id", "cell_id"))
def get_cell(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, cell_id: UUID) -> Response:
    """Return a cell as it stands now."""
    found = cells.get_cell(store, who, table_id=table_id, sheet_id=sheet_id, cell_id=cell_id)
    return PlainJson({"success": True, "cell": spell_cell(found, sheet_id)})


@router.patch("", summary="Edit a cell", response_model=CellEdited, responses=errors(WrongColumnType))
@needs("write:table", path=cell_path)
def edit_cell(
    store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, cell_id: UUID, body: CellEditBody
) -> Response:
    """Write a value into a cell of a text column; no version is made of it."""
    edit = cells.edit_cell(
        store, who, table_id=table_id, sheet_id=sheet_id, cell_id=cell_id, value=body.chosen
    )
    return PlainJson(
        {
            "success": True,
            "cell": spell_cell(edit.cell, sheet_id),
            "stale_count": edit.stale_count,
            "version": edit.version_number,
        }
    )
