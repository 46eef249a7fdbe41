"""Deleting logs: gone from every read at once, and from the files when these are next rewritten."""

import time
from collections.abc import Sequence
from datetime import timedelta

from storage.audit import record_audit, record_operator_audit
from storage.domain.errors import NotFound
from storage.domain.filters import Group
from storage.domain.keys import Principal
from storage.domain.log_deletions import check_keep_days
from storage.domain.prompts import MAX_INTEGER
from storage.domain.request_logs import to_us
from storage.engine.catalog import Connection
from storage.engine.log_reader import count_logs, find_first_since, has_log
from storage.engine.rows.log_deletions import (
    insert_deletions,
    raise_change,
    raise_gone_through,
    select_gone_through,
    select_keeping,
    set_keep_days,
    trim_scores,
)
from storage.engine.rows.log_segments import (
    LOGS,
    replace_segments,
    select_next_id,
    select_segments,
    select_views_behind,
)
from storage.engine.rows.workspaces import find_workspace_id
from storage.request_search import SearchQuery, find_request_ids
from storage.store import Store

_AT_ONCE = 5_000
_MATCHES_AT_ONCE = 200_000
_PUBLISH_WAIT_S = 10.0
_REST_S = 0.02


def delete_log(store: Store, who: Principal, log_id: int) -> None:
    """Delete one log, with its scores and what was tracked of it.

    Raises:
        NotFound: the workspace has no such log.
        Unavailable: nothing was deleted.
    """
    if not 0 < log_id <= MAX_INTEGER or not has_log(
        store.lake, store.logs, store.data, who.workspace_id, log_id
    ):
        raise NotFound("No such request log")
    with store.catalog.transaction() as connection:
        record_audit(connection, store, who, action="delete", kind="request_log", entity_id=log_id)
        if not _delete(store, who.workspace_id, [log_id]):
            raise NotFound("No such request log")  # another call was ahead
    _publish(store, who.workspace_id)


def delete_logs(store: Store, who: Principal, ids: Sequence[int]) -> int:
    """Delete logs of a workspace that were found by a search; return how many were there until now."""
    count = 0
    # that nothing was found is told too
    for start in range(0, max(1, len(ids)), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        with store.catalog.transaction() as connection:
            details = {"first_id": min(some, default=0), "last_id": max(some, default=0), "count": len(some)}
            record_audit(
                connection, store, who, action="delete", kind="request_log", entity_id="*", details=details
            )
            count += _delete(store, who.workspace_id, some)
    _publish(store, who.workspace_id)
    return count


def delete_matching(store: Store, who: Principal, group: Group) -> int:
    """Delete the logs that match a filter group now; return how many.

    They go some at a time: a deletion that is broken off (a crash, a full disk) has deleted a part.

    Raises:
        Unavailable: too many search at once, or the disk is full.
    """
    with store.logs.read() as connection:
        query = SearchQuery(group=group, as_of=select_next_id(connection) - 1)
    count = 0
    while True:
        ids = find_request_ids(store, who.workspace_id, query, limit=_MATCHES_AT_ONCE)
        count += delete_logs(store, who, ids)
        if len(ids) < _MATCHES_AT_ONCE:
            return count


def _delete(store: Store, workspace_id: int, ids: Sequence[int]) -> int:
    with store.logs.transaction() as connection:
        through = select_gone_through(connection, workspace_id)
        there = [log_id for log_id in ids if log_id > through]
        count = insert_deletions(connection, workspace_id, there, to_us(store.now()))
        raise_change(connection, workspace_id)
    return count


def delete_all_logs(store: Store, workspace: str, *, by: str = "command line") -> int:
    """Delete all logs of a workspace; return how many.

    Raises:
        NotFound: no such workspace.
    """
    workspace_id = _workspace_id(store, workspace)
    with store.logs.read() as connection:
        through = select_next_id(connection) - 1
    return _delete_through(store, workspace_id, through, by)


def keep_logs(store: Store, workspace: str, days: int | None) -> None:
    """Set for how many days a workspace keeps its logs; None: for ever.

    Raises:
        NotFound: no such workspace.
        ValueError: it is no number of days.
    """
    workspace_id, kept = _workspace_id(store, workspace), check_keep_days(days)
    with store.catalog.transaction() as audit:
        _audit(audit, store, workspace_id, "update", {"keep_days": kept, "by": "command line"})
        with store.logs.transaction() as connection:
            set_keep_days(connection, workspace_id, kept)


def list_keeping(store: Store) -> dict[int, int]:
    """For how many days workspaces keep their logs, those that do not keep them for ever."""
    with store.logs.read() as connection:
        found = select_keeping(connection)
    return {keeping.workspace_id: keeping.keep_days for keeping in found if keeping.keep_days is not None}


def forget_old_logs(store: Store) -> dict[int, int]:
    """Delete the logs that are older than their workspace keeps them; return how many by workspace."""
    deleted = {}
    for workspace_id, days in list_keeping(store).items():
        since_us = to_us(store.now() - timedelta(days=days))
        first = find_first_since(store.logs, store.data, workspace_id, since_us)
        if first is not None:
            deleted[workspace_id] = _delete_through(store, workspace_id, first - 1, f"kept {days} days")
    return {workspace_id: count for workspace_id, count in deleted.items() if count}


def _delete_through(store: Store, workspace_id: int, through: int, by: str) -> int:
    count = count_logs(store.logs, store.data, workspace_id, through)
    if not count:
        return 0
    with store.catalog.transaction() as audit:
        details = {"through_id": through, "count": count, "by": by}
        _audit(audit, store, workspace_id, "delete", details)
        with store.logs.transaction() as connection:
            raise_gone_through(connection, workspace_id, through, to_us(store.now()))
            named = select_segments(connection, workspace_id=workspace_id, kind=LOGS)
            whole = [segment for segment in named if segment.last_id <= through]
            if whole:
                replace_segments(connection, whole, [], to_us(store.now()))
            raise_change(connection, workspace_id)
    _trim_scores(store, workspace_id, through)
    _publish(store, workspace_id)
    return count


def _trim_scores(store: Store, workspace_id: int, through: int) -> None:
    # In steps with a rest between, as logging waits for the same lock.
    while True:
        with store.logs.transaction() as connection:
            if not trim_scores(connection, workspace_id, through, _AT_ONCE):
                return
        time.sleep(_REST_S)


def _publish(store: Store, workspace_id: int) -> None:
    """Publish the views of a workspace; whoever publishes them now may have begun before the deletion."""
    from storage.log_flush import publish_views  # noqa: PLC0415 - loads what few calls need

    until = time.monotonic() + _PUBLISH_WAIT_S
    while time.monotonic() < until:
        with store.logs.read() as connection:
            if workspace_id not in select_views_behind(connection):
                return
        if not publish_views(store, at_once=True):
            time.sleep(_REST_S)


def _workspace_id(store: Store, workspace: str) -> int:
    with store.catalog.read() as connection:
        workspace_id = find_workspace_id(connection, workspace)
    if workspace_id is None:
        raise NotFound(f"No workspace is named {workspace}")
    return workspace_id


def _audit(
    connection: Connection, store: Store, workspace_id: int, action: str, details: dict[str, object]
) -> None:
    record_operator_audit(
        connection,
        store,
        workspace_id=workspace_id,
        action=action,
        kind="request_log",
        entity_id="*",
        details=details,
    )
