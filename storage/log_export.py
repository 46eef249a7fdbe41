"""Export of the logs of a workspace with their scores, exact to the last answered one."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from storage.domain.errors import NotFound
from storage.domain.filters import EVERYTHING, Group
from storage.domain.request_logs import LogFilter
from storage.engine.log_export import Format, log_sink
from storage.engine.log_reader import LogBatches
from storage.engine.rows.scores import select_scores_of_many
from storage.engine.rows.workspaces import find_workspace_id
from storage.request_logs import scan_request_logs
from storage.request_search import SearchQuery, searching
from storage.store import Store

__all__ = ["Format", "LogExport", "plan_log_export"]

_BATCH_ROWS = 500
_IDS_AT_ONCE = 10_000

Report = Callable[[int], None]
"""Called with the rows that were written since it was called last."""


@dataclass(frozen=True, slots=True)
class LogExport:
    """What is to be exported: how many logs, and their ids in order (None: all)."""

    store: Store
    workspace_id: int
    rows: int
    ids: tuple[int, ...] | None

    def write(self, kind: Format, output: Path | IO[str], report: Report) -> int:
        """Write the logs in the order of their ids and return how many; those deleted meanwhile are left out.

        Raises:
            OSError: the output cannot be written.
        """
        count = 0
        with log_sink(kind, output) as sink:
            for scan in self._scans():
                with closing(scan):
                    for batch in scan:
                        log_ids = batch.column("id").to_pylist()
                        with self.store.logs.read() as connection:
                            scores = select_scores_of_many(connection, self.workspace_id, log_ids)
                        sink.write(batch, scores)
                        count += batch.num_rows
                        report(batch.num_rows)
        return count

    def _scans(self) -> Iterator[LogBatches]:
        if self.ids is None:
            wanted = [LogFilter(newest_first=False)]
        else:
            starts = range(0, len(self.ids), _IDS_AT_ONCE)
            wanted = [LogFilter(ids=self.ids[start : start + _IDS_AT_ONCE]) for start in starts]
        for one in wanted:
            yield scan_request_logs(self.store, self.workspace_id, one, batch_rows=_BATCH_ROWS)


def plan_log_export(store: Store, workspace: str, group: Group) -> LogExport:
    """Find the logs of a workspace that match a filter group now.

    Raises:
        NotFound: no such workspace.
        Unavailable: the search needs more memory or disk than there is.
    """
    with store.catalog.read() as connection:
        workspace_id = find_workspace_id(connection, workspace)
    if workspace_id is None:
        raise NotFound(f"No workspace is named {workspace}")
    query = SearchQuery(group=group, descending=False)
    with searching(store, workspace_id, query) as search:
        rows = search.count()
        ids = None if group == EVERYTHING else tuple(search.find_ids(query.sort, offset=0, limit=rows))
    return LogExport(store, workspace_id, rows, ids)
