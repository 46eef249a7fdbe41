"""Rows of operations: compare-and-set is the only way that a status changes."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from storage.domain.operations import ENDED, FAILED, QUEUED, RUNNING, Operation
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import operations, sheets, tables


def insert_operation(connection: Connection, values: dict[str, Any]) -> Operation:
    return Operation(no=new_no(connection.execute(operations.insert().values(values))), **values)


def find_operation(connection: Connection, workspace_id: int, public_id: str) -> Operation | None:
    """Return the workspace's operation of that id, if there is one."""
    return _find(connection, (operations.c.workspace_id == workspace_id) & (operations.c.id == public_id))


def find_operation_by_no(connection: Connection, no: int) -> Operation | None:
    return _find(connection, operations.c.no == no)


def _find(connection: Connection, where: sa.ColumnElement[bool]) -> Operation | None:
    row = connection.execute(sa.select(operations).where(where)).mappings().first()
    return None if row is None else Operation(**row)


def select_by_status(connection: Connection, statuses: Sequence[str], limit: int) -> list[Operation]:
    where = operations.c.status.in_(statuses)
    query = sa.select(operations).where(where).order_by(operations.c.no).limit(limit)
    return [Operation(**row) for row in connection.execute(query).mappings()]


def update_queued(connection: Connection, no: int, attempt: int, values: dict[str, Any]) -> bool:
    """Change an operation that is queued under this attempt; False when it is not."""
    where = (operations.c.no == no) & (operations.c.attempt == attempt) & (operations.c.status == QUEUED)
    return connection.execute(operations.update().where(where).values(values)).rowcount == 1


def update_open(connection: Connection, no: int, attempt: int, values: dict[str, Any]) -> bool:
    """Change an operation of this attempt that has not ended; False when it has."""
    where = (
        (operations.c.no == no)
        & (operations.c.attempt == attempt)
        & operations.c.status.not_in(sorted(ENDED))
    )
    return connection.execute(operations.update().where(where).values(values)).rowcount == 1


def update_owned(connection: Connection, operation: Operation, values: dict[str, Any]) -> bool:
    """Change an operation that its run still owns; False when it was cancelled, failed or taken over."""
    where = (
        (operations.c.no == operation.no)
        & (operations.c.attempt == operation.attempt)
        & (operations.c.run_id == operation.run_id)
        & (operations.c.status == RUNNING)
    )
    return connection.execute(operations.update().where(where).values(values)).rowcount == 1


def release_sheet(connection: Connection, operation_no: int) -> None:
    """Let others write the sheet that this operation wrote."""
    where = sheets.c.writer_no == operation_no
    connection.execute(sheets.update().where(where).values(writer_no=None))


def select_open(connection: Connection, *, table_no: int, sheet_no: int | None = None) -> list[Operation]:
    """Return the operations of a table, or of one of its sheets, that have not ended."""
    where = (operations.c.table_no == table_no) & operations.c.status.not_in(sorted(ENDED))
    if sheet_no is not None:
        where &= operations.c.sheet_no == sheet_no
    return [Operation(**row) for row in connection.execute(sa.select(operations).where(where)).mappings()]


def set_answer(connection: Connection, no: int, answer: dict[str, Any]) -> None:
    """Keep the first answer for repeats."""
    connection.execute(operations.update().where(operations.c.no == no).values(answer=answer))


def find_sheet_id(connection: Connection, operation_no: int) -> UUID | None:
    query = sa.select(sheets.c.id).where(
        operations.c.no == operation_no, operations.c.sheet_no == sheets.c.no
    )
    return connection.execute(query).scalar_one_or_none()


def find_written(connection: Connection, operation_no: int) -> tuple[UUID, UUID] | None:
    """Return the public ids of the table and the sheet that an operation writes, deleted or not."""
    query = sa.select(tables.c.id, sheets.c.id).where(
        operations.c.no == operation_no,
        operations.c.sheet_no == sheets.c.no,
        sheets.c.table_no == tables.c.no,
    )
    row = connection.execute(query).first()
    return None if row is None else (row[0], row[1])


def update_failed(connection: Connection, operation: Operation, run_id: str, values: dict[str, Any]) -> bool:
    """Open a failed operation again and let it write its sheet; False when it or the sheet moved on since."""
    failed = (
        (operations.c.no == operation.no)
        & (operations.c.attempt == operation.attempt)
        & (operations.c.status == FAILED)
        & (operations.c.run_id == run_id)
    )
    unchanged = (
        (sheets.c.no == operation.sheet_no)
        & (sheets.c.writer_no.is_(None))
        & (sheets.c.deleted_at.is_(None))
        & (sheets.c.updated_at <= operation.updated_at)
    )
    opened = connection.execute(operations.update().where(failed).values(values)).rowcount == 1
    taken = connection.execute(sheets.update().where(unchanged).values(writer_no=operation.no)).rowcount == 1
    return opened and taken
