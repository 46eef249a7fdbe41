"""Documents of the registry: AB tests and input variable sets, a name and a content kept as it was sent."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class DocumentKind(StrEnum):
    """The kinds, by their word in scopes and audit entries."""

    AB_TEST = "ab_test"
    INPUT_VARIABLE_SET = "input_variable_set"

    @property
    def words(self) -> str:
        return self.value.replace("_", " ").replace("ab ", "AB ")


@dataclass(frozen=True, slots=True)
class Document:
    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    content: Any
    created_at: datetime
    updated_at: datetime
