"""Rows of documents: AB tests and input variable sets."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.documents import Document, DocumentKind
from storage.engine.catalog import Connection, new_no
from storage.engine.registry_schema import ab_tests, input_variable_sets

_TABLES = {DocumentKind.AB_TEST: ab_tests, DocumentKind.INPUT_VARIABLE_SET: input_variable_sets}


def insert_document(connection: Connection, kind: DocumentKind, values: dict[str, Any]) -> int:
    return new_no(connection.execute(_TABLES[kind].insert().values(values)))


def find_document(
    connection: Connection,
    kind: DocumentKind,
    workspace_id: int,
    *,
    document_id: int | None = None,
    name: str | None = None,
) -> Document | None:
    """Find a live document by its id or its name."""
    columns = _TABLES[kind].c
    wanted = columns.id == document_id if name is None else columns.name == name
    rows = connection.execute(_select(kind, workspace_id).where(wanted)).mappings()
    row = rows.first()
    return None if row is None else Document(**row)


def select_documents(
    connection: Connection,
    kind: DocumentKind,
    workspace_id: int,
    *,
    name: str | None,
    after: int | None,
    descending: bool,
    limit: int,
) -> list[Document]:
    """Return live documents by age, from beyond an id; `name` is any part of it, in any case."""
    columns = _TABLES[kind].c
    query = _select(kind, workspace_id)
    if name is not None:
        query = query.where(columns.name.icontains(name, autoescape=True))
    if after is not None:
        query = query.where(columns.id < after if descending else columns.id > after)
    query = query.order_by(columns.id.desc() if descending else columns.id).limit(limit)
    return [Document(**row) for row in connection.execute(query).mappings()]


def mark_document_deleted(
    connection: Connection, kind: DocumentKind, document_id: int, now: datetime
) -> None:
    table = _TABLES[kind]
    connection.execute(table.update().where(table.c.id == document_id).values(deleted_at=now))


def _select(kind: DocumentKind, workspace_id: int) -> sa.Select[Any]:
    columns = _TABLES[kind].c
    shown = [columns[name] for name in Document.__slots__]
    return sa.select(*shown).where(columns.workspace_id == workspace_id, columns.deleted_at.is_(None))
