"""SQL of the operator over the logs of a workspace, exact to the last answered log (`promptlake sql`)."""

from collections.abc import Iterator
from contextlib import contextmanager

from storage.domain.errors import NotFound
from storage.engine.ad_hoc import AdHoc, QueryError, ad_hoc, split_statements
from storage.engine.rows.workspaces import find_workspace_id
from storage.store import Store

__all__ = ["AdHoc", "QueryError", "open_ad_hoc", "split_statements"]


@contextmanager
def open_ad_hoc(store: Store, workspace: str) -> Iterator[AdHoc]:
    """Open the views `request_logs`, `scores` and `request_logs_as_of` of a workspace as they stand now.

    Raises:
        NotFound: no such workspace.
    """
    with store.catalog.read() as connection:
        workspace_id = find_workspace_id(connection, workspace)
    if workspace_id is None:
        raise NotFound(f"No workspace is named {workspace}")
    with ad_hoc(store.logs, store.data, workspace_id, store.now()) as opened:
        yield opened
