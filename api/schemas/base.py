"""What every wire shape starts from."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from storage.domain.keys import Principal, check_workspace
from storage.domain.operations import OPERATION_ID_PATTERN
from storage.domain.prompts import MAX_INTEGER

WireInt = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER, json_schema_extra={"format": "int64"})]
"""An integer that the catalog can be asked for; larger ones are 422, not a failure of ours."""

OperationId = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=OPERATION_ID_PATTERN)]
"""A client's name for an operation."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class Body(BaseModel):
    """A request body: no other keys, no value of another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TolerantBody(BaseModel):
    """A request body whose unknown keys are left unread."""

    model_config = ConfigDict(extra="ignore", strict=True)


class KeptBody(BaseModel):
    """A part of a request body whose unknown keys are kept as they came."""

    model_config = ConfigDict(extra="allow", strict=True)


class Answer(BaseModel):
    """A response: what it has a default for is sent all the same."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)


def example(value: Any) -> ConfigDict:
    """Attach one example to the schema of a shape."""
    return ConfigDict(json_schema_extra={"examples": [value]})


def check_workspace_id(who: Principal, workspace_id: int | None) -> None:
    """Refuse a workspace that is not the key's.

    Raises:
        Malformed: it is another one.
    """
    check_workspace(who, workspace_id)
