"""Columns: listed in their order."""

from uuid import UUID

from storage.domain.columns import Column
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.engine.rows.columns import select_columns_page
from storage.sheets import require_sheet
from storage.store import Store


def list_columns(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, request: PageRequest
) -> Page[Column]:
    """List the columns of a sheet by position.

    Raises:
        NotFound: no such sheet.
        InvalidCursor: the cursor is of another list.
    """
    window = plan_page(store.cursor_key, request, sort="position_rank", filters={"sheet": str(sheet_id)})
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        found = select_columns_page(
            connection, sheet.no, after=window.position, backwards=window.descending, limit=window.limit
        )
    return page_of(store.cursor_key, window, found, lambda column: column.position_rank)
