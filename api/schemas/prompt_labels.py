"""Wire shapes of release labels as they are created and moved."""

from typing import Annotated, Literal, Self

from pydantic import Field

from api.schemas.base import Answer, Body, Name, WireInt, example
from storage.domain.prompts import MAX_INTEGER, ReleaseLabel

VersionNumber = Annotated[int, Field(ge=1, le=MAX_INTEGER)]

_LABEL = {
    "success": True,
    "message": "Release label created",
    "prompt_id": 1,
    "prompt_version_id": 3,
    "prompt_version_number": 3,
    "release_label": "prod",
    "release_label_id": 1,
}


class LabelCreate(Body):
    model_config = example({"name": "prod", "prompt_version_number": 3})

    name: Name
    prompt_version_number: VersionNumber
    workspace_id: WireInt | None = None


class LabelMove(Body):
    """Absent or null leaves the label where it is."""

    model_config = example({"prompt_version_number": 4})

    prompt_version_number: VersionNumber | None = None
    workspace_id: WireInt | None = None


class LabelAnswer(Answer):
    model_config = example(_LABEL)

    success: Literal[True] = True
    message: str
    prompt_id: int
    prompt_version_id: int
    prompt_version_number: int
    release_label: str
    release_label_id: int

    @classmethod
    def of(cls, label: ReleaseLabel, message: str) -> Self:
        return cls(
            message=message,
            prompt_id=label.prompt_id,
            prompt_version_id=label.prompt_version_id,
            prompt_version_number=label.prompt_version_number,
            release_label=label.name,
            release_label_id=label.id,
        )
