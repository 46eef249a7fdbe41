"""Wire shapes of E8: where a new sheet comes from."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, StringConstraints

from api.schemas.base import Body, OperationId
from api.schemas.history_source import RequestLogsSource
from storage.domain.file_imports import FILE_ENDINGS, find_file_format
from storage.domain.prompts import MAX_INTEGER

Title = Annotated[str, StringConstraints(min_length=1, max_length=255)]

_EXAMPLE: dict[str, JsonValue] = {
    "source": {
        "type": "file",
        "file_name": "questions.csv",
        "file_content_base64": "cXVlc3Rpb24sYW5zd2VyDQpXaGF0IGlzIDIgKyAyPyw0DQo=",
    },
    "operation_id": "questions-2026-11-20",
}

_HISTORY_EXAMPLE: dict[str, JsonValue] = {
    "source": {
        "type": "request_logs",
        "start_time": "2026-11-01",
        "variables_to_parse": ["question"],
        "include_fields": ["model", "latency_ms"],
        "limit": 1000,
    },
    "title": "November",
}


def _check_file_name(name: str) -> str:
    if find_file_format(name) is None:
        raise ValueError(f"must end in one of {', '.join(FILE_ENDINGS)}")
    return name


FileName = Annotated[Title, AfterValidator(_check_file_name)]
FileContent = Annotated[str, Field(description="RFC 4648 section 4, with padding, without line breaks.")]


class FileSource(Body):
    """A CSV or JSON file (`.csv`, `.tsv`, `.json`, `.jsonl`, `.ndjson`), at most 100 MB when decoded."""

    type: Literal["file"]
    file_name: FileName
    file_content_base64: FileContent


class ImportFileBody(Body):
    """A CSV or JSON file for a sheet that is there: its titles are matched, new ones become columns."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "file_name": "more.csv",
                    "file_content_base64": "cXVlc3Rpb24sYW5zd2VyDQpXaGF0IGlzIDIgKyAyPyw0DQo=",
                    "operation_id": "more-2026-11-20",
                }
            ]
        }
    )

    file_name: FileName
    file_content_base64: FileContent
    operation_id: Annotated[
        OperationId | None, Field(description="A repeat with the same body starts nothing.")
    ] = None


class CreateSheetBody(Body):
    """A new sheet: blank without a source, else filled by an import that runs after the answer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_EXAMPLE, _HISTORY_EXAMPLE, {"title": "Scratch"}]}
    )

    source: Annotated[FileSource | RequestLogsSource, Field(discriminator="type")] | None = None
    title: Annotated[Title | None, Field(description="Default: the file's name, or Request Logs.")] = None
    index: Annotated[
        int | None,
        Field(ge=0, le=MAX_INTEGER, description="0-based place in the table; default and beyond: the end."),
    ] = None
    operation_id: Annotated[
        OperationId | None, Field(description="A repeat with the same body starts nothing.")
    ] = None
