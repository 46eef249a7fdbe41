"""SQL of the operator over the logs of a workspace, exact to the last answered log (`promptlake sql`)."""

from collections.abc import Iterator
from contextlib import contextmanager

from storage.domain.errors import NotFound
from storage.engine.ad_hoc import AdHoc, QueryError, ad_hoc, split_statements
from storage.engine.rows.workspaces import find_workspace_id
from storage.sheet_views import add_sheet_views
from storage.store import Store

__all__ = ["AdHoc", "QueryError", "open_ad_hoc", "split_statements"]


@contextmanager
def open_ad_hoc(store: Store, workspace: str, query: str = "") -> Iterator[AdHoc]:
    """Open the views of a workspace as they stand now.

    These are the views of logs and scores, and `"table"."sheet"` and `"table"."sheet@3"` as the query names
    them.

    Raises:
        NotFound: no such workspace.
    """
    with store.catalog.read() as connection:
        workspace_id = find_workspace_id(connection, workspace)
    if workspace_id is None:
        raise NotFound(f"No workspace is named {workspace}")
    with ad_hoc(store.logs, store.data, workspace_id, store.now()) as opened:
        opened.extend(lambda connection: add_sheet_views(store, connection, workspace_id, query))
        yield opened
