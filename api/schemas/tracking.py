"""Wire shapes of tracking: what is said of a logged request later (E2, its companions, legacy paths)."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from api.schemas.base import Answer, Body, Name, TolerantBody, WireInt, example
from api.schemas.request_logs import MetadataKey
from storage.domain.prompts import MAX_INTEGER
from storage.domain.request_logs import DEFAULT_SCORE_NAME, Score

RequestId = Annotated[int, Field(ge=1, le=MAX_INTEGER, json_schema_extra={"format": "int64"})]
ScoreName = Annotated[str, StringConstraints(min_length=1, max_length=255)]
ScoreValue = Annotated[int, Field(ge=0, le=100)]
Metadata = dict[MetadataKey, str]


class TrackScore(Body):
    """A score of a request (E2)."""

    model_config = Body.model_config | example({"request_id": 17, "score": 90, "name": "helpfulness"})

    request_id: RequestId
    score: ScoreValue
    name: ScoreName | None = None

    def value(self) -> Score:
        return Score(self.name or DEFAULT_SCORE_NAME, self.score)


class TrackMetadata(Body):
    model_config = Body.model_config | example({"request_id": 17, "metadata": {"customer": "ada"}})

    request_id: RequestId
    metadata: Metadata


class TrackPrompt(Body):
    """Which prompt a request used: by id or name; a version, a label, or neither."""

    model_config = Body.model_config | example(
        {
            "request_id": 17,
            "prompt_name": "greet",
            "version": 2,
            "prompt_input_variables": {"name": "Ada"},
        }
    )

    request_id: RequestId
    prompt_id: WireInt | None = None
    prompt_name: Name | None = None
    version: Annotated[int, Field(ge=1, le=MAX_INTEGER)] | None = None
    label: Name | None = None
    prompt_input_variables: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if self.prompt_id is None and self.prompt_name is None:
            raise ValueError("prompt_id or prompt_name is needed")
        if self.version is not None and self.label is not None:
            raise ValueError("give version or label, not both")
        return self


class TrackGroup(Body):
    model_config = Body.model_config | example({"request_id": 17, "group_id": 3})

    request_id: RequestId
    group_id: RequestId


class CreateGroup(Body):
    model_config = Body.model_config | example({})


class GroupCreated(Answer):
    model_config = Answer.model_config | example({"success": True, "message": "Group created", "id": 3})

    success: Literal[True] = True
    message: str = "Group created"
    id: int


def _whole(value: Any) -> Any:
    """Older clients hand on an id as the text that they kept it as."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


LegacyId = Annotated[RequestId, BeforeValidator(_whole)]


class LegacyBody(TolerantBody):
    """A body of the paths that carry the key in it; keys that are not known are left unread."""

    api_key: str | None = Field(default=None, description="The API key; the header X-API-KEY serves as well.")


class LegacyScore(LegacyBody):
    model_config = LegacyBody.model_config | example(
        {"api_key": "pl_...", "request_id": 17, "score": 90, "name": "helpfulness"}
    )

    request_id: LegacyId
    score: ScoreValue
    name: ScoreName | None = None
    score_name: ScoreName | None = None

    def value(self) -> Score:
        return Score(self.name or self.score_name or DEFAULT_SCORE_NAME, self.score)


class LegacyMetadata(LegacyBody):
    model_config = LegacyBody.model_config | example(
        {"api_key": "pl_...", "request_id": 17, "metadata": {"customer": "ada"}}
    )

    request_id: LegacyId
    metadata: Metadata


class LegacyPrompt(LegacyBody):
    model_config = LegacyBody.model_config | example(
        {
            "api_key": "pl_...",
            "request_id": 17,
            "prompt_name": "greet",
            "prompt_input_variables": {"name": "Ada"},
            "version": 2,
            "label": None,
        }
    )

    request_id: LegacyId
    prompt_name: Name | None = None
    prompt_id: WireInt | None = None
    prompt_input_variables: dict[str, Any] | None = None
    version: Annotated[int, Field(ge=1, le=MAX_INTEGER)] | None = None
    label: Name | None = None

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.prompt_id is None and self.prompt_name is None:
            raise ValueError("prompt_name is needed")
        return self


class LegacyGroup(LegacyBody):
    model_config = LegacyBody.model_config | example({"api_key": "pl_...", "request_id": 17, "group_id": 3})

    request_id: LegacyId
    group_id: LegacyId


class LegacyCreateGroup(LegacyBody):
    model_config = LegacyBody.model_config | example({"api_key": "pl_..."})
