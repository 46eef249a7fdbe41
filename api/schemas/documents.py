"""Wire shapes of documents: AB tests and input variable sets."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import StringConstraints

from api.schemas.base import Answer, Body, WireInt, example
from storage.domain.documents import Document

_CONTENT = {"question": "What is Parquet?"}


class DocumentBody(Body):
    """A name, and a content that is any JSON value, kept as it was sent."""

    model_config = example({"name": "Questions", "content": _CONTENT})

    name: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    content: Any
    folder_id: WireInt | None = None
    workspace_id: WireInt | None = None


class DocumentOut(Answer):
    model_config = example(
        {
            "success": True,
            "id": 5,
            "workspace_id": 1,
            "name": "Questions",
            "folder_id": None,
            "user_id": 1,
            "content": _CONTENT,
            "created_at": "2026-01-05T09:30:00Z",
            "updated_at": "2026-01-05T09:30:00Z",
        }
    )

    success: Literal[True] = True
    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    content: Any
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, document: Document) -> Self:
        return cls(
            id=document.id,
            workspace_id=document.workspace_id,
            name=document.name,
            folder_id=document.folder_id,
            user_id=document.user_id,
            content=document.content,
            created_at=document.created_at,
            updated_at=document.updated_at,
        )
