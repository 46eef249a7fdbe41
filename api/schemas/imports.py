"""Wire shapes of import operations."""

from datetime import datetime
from typing import Literal

from api.schemas.base import Answer
from api.schemas.sheets import SheetOut
from storage.domain.imports import ImportProgress, Started, file_name_of, source_of
from storage.domain.operations import Operation
from storage.domain.sheets import Sheet


class ImportOperationOut(Answer):
    """An import as a client polls it; `row_count` is the sheet's, `rows_added` 0 until it succeeded."""

    operation_id: str
    status: Literal["queued", "running", "succeeded", "failed"]
    source: Literal["file", "request_logs"]
    progress: int
    message: str
    rows_added: int
    row_count: int
    file_name: str
    error_message: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, operation: Operation, row_count: int) -> "ImportOperationOut":
        return cls.model_validate(
            {
                "operation_id": operation.id,
                "status": operation.status,
                "source": source_of(operation),
                "progress": operation.progress,
                "message": operation.message,
                "rows_added": operation.rows_added,
                "row_count": row_count,
                "file_name": file_name_of(operation),
                "error_message": operation.error_message,
                "created_at": operation.created_at,
                "updated_at": operation.updated_at,
            }
        )


class ImportOperationAnswer(Answer):
    """Answer of E12."""

    success: Literal[True] = True
    operation: ImportOperationOut

    @classmethod
    def of(cls, found: ImportProgress) -> "ImportOperationAnswer":
        return cls(operation=ImportOperationOut.of(found.operation, found.row_count))


class SheetCreated(Answer):
    """Answer of E8; `operation` is null for a blank sheet."""

    success: Literal[True] = True
    message: str
    operation_id: str | None
    operation: ImportOperationOut | None
    sheet: SheetOut

    @classmethod
    def of_import(cls, started: Started) -> "SheetCreated":
        operation = started.operation
        return cls(
            message="Import queued",
            operation_id=operation.id,
            operation=ImportOperationOut.of(operation, started.sheet.row_count),
            sheet=SheetOut.of(started.sheet),
        )

    @classmethod
    def of_blank(cls, sheet: Sheet) -> "SheetCreated":
        return cls(message="Sheet created", operation_id=None, operation=None, sheet=SheetOut.of(sheet))


class ImportQueued(Answer):
    """Answer of an import into a sheet that is there; `status_url` is where to poll it."""

    success: Literal[True] = True
    message: str
    operation_id: str
    operation: ImportOperationOut
    status_url: str

    @classmethod
    def of(cls, started: Started) -> "ImportQueued":
        operation = started.operation
        return cls(
            message="Import queued",
            operation_id=operation.id,
            operation=ImportOperationOut.of(operation, started.sheet.row_count),
            status_url=f"/api/public/v2/tables/{started.sheet.table_id}/sheets/operations/{operation.id}",
        )
