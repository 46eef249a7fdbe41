"""Documents of the registry: AB tests and input variable sets; made, read, listed, deleted."""

from typing import Any

from storage.audit import record_audit
from storage.domain.documents import Document, DocumentKind
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.engine.catalog import Connection
from storage.engine.rows.documents import (
    find_document,
    insert_document,
    mark_document_deleted,
    select_documents,
)
from storage.folders import check_folder
from storage.store import Store


def create_document(
    store: Store,
    who: Principal,
    kind: DocumentKind,
    *,
    name: str,
    content: Any,
    folder_id: int | None = None,
) -> Document:
    """Make a document; its content is kept as it was sent.

    Raises:
        NotFound: the folder is unknown.
        Conflict: another one of its kind has the name.
    """
    now = store.now()
    with store.catalog.transaction() as connection:
        check_folder(connection, who, folder_id)
        if find_document(connection, kind, who.workspace_id, name=name) is not None:
            raise Conflict(f"There is an {kind.words} named {name}")
        values = {
            "workspace_id": who.workspace_id,
            "name": name,
            "folder_id": folder_id,
            "user_id": who.user_id,
            "content": content,
            "created_at": now,
            "updated_at": now,
        }
        document_id = insert_document(connection, kind, values)
        details = {"name": name, "folder_id": folder_id}
        record_audit(
            connection, store, who, action="create", kind=kind, entity_id=document_id, details=details
        )
        return _require_document(connection, who, kind, document_id)


def get_document(store: Store, who: Principal, kind: DocumentKind, document_id: int) -> Document:
    """Return a document.

    Raises:
        NotFound: no such document in the workspace.
    """
    with store.catalog.read() as connection:
        return _require_document(connection, who, kind, document_id)


def list_documents(
    store: Store, who: Principal, kind: DocumentKind, *, request: PageRequest, name: str | None = None
) -> Page[Document]:
    """List the workspace's documents of a kind by age; `name` is any part of it, in any case.

    Raises:
        InvalidCursor: the cursor is of another list.
    """
    filters = {"workspace": who.workspace_id, "list": kind, "name": name}
    window = plan_page(store.cursor_key, request, sort="id", filters=filters)
    with store.catalog.read() as connection:
        found = select_documents(
            connection,
            kind,
            who.workspace_id,
            name=name,
            after=window.position,
            descending=window.descending,
            limit=window.limit,
        )
    return page_of(store.cursor_key, window, found, lambda document: document.id)


def delete_document(store: Store, who: Principal, kind: DocumentKind, document_id: int) -> None:
    """Delete a document; its name is free again.

    Raises:
        NotFound: no such document.
    """
    with store.catalog.transaction() as connection:
        document = _require_document(connection, who, kind, document_id)
        mark_document_deleted(connection, kind, document_id, store.now())
        details = {"name": document.name}
        record_audit(
            connection, store, who, action="delete", kind=kind, entity_id=document_id, details=details
        )


def _require_document(
    connection: Connection, who: Principal, kind: DocumentKind, document_id: int
) -> Document:
    found = find_document(connection, kind, who.workspace_id, document_id=document_id)
    if found is None:
        raise NotFound(f"No {kind.words} has the id {document_id}")
    return found
