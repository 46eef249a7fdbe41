"""Drafts of dataset groups: made empty, from a version, a file or requests (E22, E23), and saved (E24)."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from storage.audit import record_audit
from storage.dataset_groups import require_group
from storage.dataset_outcomes import KIND
from storage.dataset_sheets import emptied_sheet, require_group_sheet
from storage.domain.datasets import Dataset, DatasetGroup, LinkKind
from storage.domain.drafts import DRAFT_NUMBER, DraftState, Follows, Trigger, plan_move
from storage.domain.errors import NotFound, invalid
from storage.domain.keys import Principal
from storage.domain.operations import DATASET_COPY, DATASET_FILE, DATASET_FILTER, DATASET_SAVE, Operation
from storage.domain.sheets import Sheet
from storage.domain.uploads import Upload
from storage.engine.catalog import Connection
from storage.engine.rows.datasets import (
    find_dataset,
    find_draft,
    insert_dataset,
    insert_links,
    update_dataset,
)
from storage.engine.rows.sheets import update_sheet
from storage.operations import enqueue
from storage.store import Store
from storage.uploads import discard_upload


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft's id, and the operation that was queued for it; None when nothing was to be queued."""

    dataset_id: int
    operation: Operation | None


def start_file_draft(
    store: Store, who: Principal, *, group_id: int, file_name: str, upload: Upload
) -> Drafted:
    """Queue the import of an upload as the group's next version (E22); the draft shows until then.

    The upload stays in the spool only if the operation now names it.

    Raises:
        NotFound: no such group.
        DraftExists: the group has a draft.
    """
    try:
        with store.catalog.transaction() as connection:
            return _import(
                connection,
                store,
                who,
                require_group(connection, who, group_id),
                DATASET_FILE,
                {"file_name": file_name, "upload": upload.spec()},
            )
    except BaseException:
        discard_upload(store, upload)
        raise


def start_filter_draft(
    store: Store,
    who: Principal,
    *,
    group_id: int,
    filter_params: Mapping[str, Any],
    links: tuple[tuple[LinkKind, int], ...],
) -> Drafted:
    """Queue the reading of requests that match as the group's next version, a dynamic dataset.

    Raises:
        NotFound: no such group.
        DraftExists: the group has a draft.
    """
    with store.catalog.transaction() as connection:
        group = require_group(connection, who, group_id)
        made = _import(
            connection, store, who, group, DATASET_FILTER, {"history": dict(filter_params)}, filter_params
        )
        insert_links(connection, made.dataset_id, links)
        return made


def _import(
    connection: Connection,
    store: Store,
    who: Principal,
    group: DatasetGroup,
    kind: str,
    spec: dict[str, Any],
    filter_params: Mapping[str, Any] | None = None,
) -> Drafted:
    state = _moved(connection, group, Trigger.IMPORT)
    sheet = emptied_sheet(connection, store, who, group)
    dataset_id = _add_draft(connection, store, who, group, state, filter_params=filter_params)
    operation = _enqueue(connection, store, who, group, sheet, dataset_id, kind, spec)
    return Drafted(dataset_id, operation)


def create_draft(
    store: Store, who: Principal, *, group_id: int, source_dataset_id: int | None = None
) -> Drafted:
    """Make an empty draft, or queue the copy of a version's rows into one (E23).

    Raises:
        NotFound: no such group, or no such version of it.
        DraftExists: the group has a draft.
    """
    with store.catalog.transaction() as connection:
        group = require_group(connection, who, group_id)
        source = None if source_dataset_id is None else _source(connection, who, group, source_dataset_id)
        state = _moved(connection, group, Trigger.CREATE if source is None else Trigger.CREATE_FROM)
        sheet = emptied_sheet(connection, store, who, group)
        dataset_id = _add_draft(connection, store, who, group, state, source=source)
        if source is None:
            return Drafted(dataset_id, None)
        spec = {"sheet_version": source.sheet_version}
        operation = _enqueue(connection, store, who, group, sheet, dataset_id, DATASET_COPY, spec)
        return Drafted(dataset_id, operation)


def _source(connection: Connection, who: Principal, group: DatasetGroup, dataset_id: int) -> Dataset:
    found = find_dataset(connection, who.workspace_id, dataset_id)
    if found is None or found.group.id != group.id:
        raise NotFound(f"The dataset group has no dataset of the id {dataset_id}")
    if found.is_draft:
        # there can be no other: the refusal of a second draft is what its caller needs to hear
        plan_move(found.draft_state, Trigger.CREATE_FROM)
        raise invalid("source_dataset_id", "is a draft: only saved versions are copied")
    return found


def save_draft(store: Store, who: Principal, *, group_id: int) -> Drafted:
    """Queue the save of a group's draft (E24); a save under way, or rows that still come, make one version.

    Raises:
        NotFound: no such group.
        NoDraft: it has no draft.
    """
    with store.catalog.transaction() as connection:
        group = require_group(connection, who, group_id)
        draft = find_draft(connection, group.id)
        move = plan_move(draft.draft_state if draft else DraftState.NONE, Trigger.SAVE)
        if draft is None:
            raise RuntimeError("a draft that is not there was moved")
        operation = None
        if move.to is not draft.draft_state:
            update_dataset(connection, draft.id, {"state": move.to, "updated_at": store.now()})
        if move.follows is Follows.WORK:
            sheet = require_group_sheet(connection, group)
            operation = _enqueue(connection, store, who, group, sheet, draft.id, DATASET_SAVE, {})
        _audit(connection, store, who, group, draft.id, "save_draft", {"state": move.to})
        return Drafted(draft.id, operation)


def _moved(connection: Connection, group: DatasetGroup, trigger: Trigger) -> DraftState:
    draft = find_draft(connection, group.id)
    return plan_move(draft.draft_state if draft else DraftState.NONE, trigger).to


def _add_draft(
    connection: Connection,
    store: Store,
    who: Principal,
    group: DatasetGroup,
    state: DraftState,
    *,
    source: Dataset | None = None,
    filter_params: Mapping[str, Any] | None = None,
) -> int:
    now = store.now()
    values = {
        "workspace_id": who.workspace_id,
        "dataset_group_id": group.id,
        "version_number": DRAFT_NUMBER,
        "name": group.name,
        "state": state,
        "operation_no": None,
        "sheet_version": None,
        "column_names": [],
        "row_count": 0,
        "filter_params": None if filter_params is None else dict(filter_params),
        "user_id": who.user_id,
        "created_at": now,
        "updated_at": now,
    }
    dataset_id = insert_dataset(connection, values)
    details = {"state": state, "source_dataset_id": source and source.id}
    _audit(connection, store, who, group, dataset_id, "create_draft", details)
    return dataset_id


def _enqueue(
    connection: Connection,
    store: Store,
    who: Principal,
    group: DatasetGroup,
    sheet: Sheet,
    dataset_id: int,
    kind: str,
    spec: dict[str, Any],
) -> Operation:
    operation = enqueue(
        connection,
        store,
        who,
        operation_id=None,
        kind=kind,
        lane="short",
        request_hash=sha256(f"{kind}\n{dataset_id}".encode()).hexdigest(),
        spec={**spec, "dataset_group_id": group.id, "dataset_id": dataset_id},
        table_no=sheet.table_no,
        sheet_no=sheet.no,
    )
    update_sheet(connection, sheet.no, {"writer_no": operation.no})
    update_dataset(connection, dataset_id, {"operation_no": operation.no})
    return operation


def _audit(
    connection: Connection,
    store: Store,
    who: Principal,
    group: DatasetGroup,
    dataset_id: int,
    action: str,
    details: dict[str, Any],
) -> None:
    record_audit(
        connection,
        store,
        who,
        action=action,
        kind=KIND,
        entity_id=dataset_id,
        details={"dataset_group_id": group.id, **details},
    )
