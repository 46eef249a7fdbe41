"""The body of E1 and its answers; values are checked by shape here, by rule in the domain."""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.config import JsonDict, with_config
from typing_extensions import TypedDict

from api.schemas.base import Answer
from storage.domain.request_logs import (
    DEFAULT_SCORE_NAME,
    MAX_ERROR_MESSAGE_CHARS,
    MAX_METADATA_KEY_CHARS,
    MAX_TAG_CHARS,
    Score,
    check_block,
    check_message,
    parse_moment_us,
)

_INT64 = 9_223_372_036_854_775_807
_KEEP = ConfigDict(extra="allow", strict=True)


@with_config(_KEEP)
class ContentBlock(TypedDict):
    """One block of content; a text block has `text`, other types and keys are kept as they are."""

    type: str
    text: NotRequired[Any]


def _checked_block(block: ContentBlock) -> ContentBlock:
    check_block(block)
    return block


_Block = Annotated[ContentBlock, AfterValidator(_checked_block)]


@with_config(_KEEP)
class Message(TypedDict):
    """One message; content is an array of blocks, null only on an assistant message that calls tools."""

    role: str
    content: NotRequired[list[_Block] | None]


def _checked_message(message: Message) -> Message:
    if message.get("content") is None:
        check_message(message)
        message["content"] = []
    return message


@with_config(_KEEP)
class ChatExchange(TypedDict):
    """Input or output of a chat."""

    type: Literal["chat"]
    messages: list[Annotated[Message, AfterValidator(_checked_message)]]


@with_config(_KEEP)
class CompletionExchange(TypedDict):
    """Input or output of a completion."""

    type: Literal["completion"]
    content: list[_Block]
    input_variables: NotRequired[list[Any]]
    template_format: NotRequired[str]


Exchange = Annotated[ChatExchange | CompletionExchange, Field(discriminator="type")]
Status = Literal["SUCCESS", "WARNING", "ERROR"]
Count = Annotated[int, Field(ge=0, le=_INT64)]
Tag = Annotated[str, Field(max_length=MAX_TAG_CHARS)]
MetadataKey = Annotated[str, Field(max_length=MAX_METADATA_KEY_CHARS)]


def _moment(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a time in ISO 8601, or a number of seconds or milliseconds")  # noqa: TRY004
    return parse_moment_us(value)


Moment = Annotated[
    int,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "number", "description": "up to 2e10 seconds, above milliseconds, since 1970"},
            ]
        }
    ),
]


_EXAMPLE: JsonDict = {
    "provider": "openai",
    "model": "gpt-4o-mini",
    "input": {
        "type": "chat",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "How many legs has a spider?"}]}],
    },
    "output": {
        "type": "chat",
        "messages": [{"role": "assistant", "content": [{"type": "text", "text": "Eight."}]}],
    },
    "request_start_time": "2026-01-05T09:30:00Z",
    "request_end_time": "2026-01-05T09:30:01.250Z",
    "parameters": {"temperature": 0.2},
    "tags": ["tour"],
    "metadata": {"user": "ada"},
    "input_tokens": 14,
    "output_tokens": 3,
    "price": 0.00002,
}


class LogRequest(BaseModel):
    """A logged exchange with a model (E1)."""

    model_config = ConfigDict(strict=True, extra="ignore", json_schema_extra={"examples": [_EXAMPLE]})

    provider: str
    model: str
    input: Exchange
    output: Exchange
    request_start_time: Moment
    request_end_time: Moment
    # factories: pydantic copies a default that can change, deeply and so slowly
    parameters: dict[str, Any] = Field(default_factory=dict)
    tags: list[Tag] = Field(default_factory=list)
    metadata: dict[MetadataKey, str] = Field(default_factory=dict)
    prompt_name: str | None = None
    prompt_id: Annotated[int, Field(le=_INT64)] | None = None
    prompt_version_number: Annotated[int, Field(gt=0, le=_INT64)] | None = None
    prompt_input_variables: dict[str, Any] = Field(default_factory=dict)
    input_tokens: Count = 0
    output_tokens: Count = 0
    price: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    function_name: str = ""
    score: Annotated[int, Field(ge=0, le=100)] = 0
    score_name: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    api_type: str | None = None
    status: Status = "SUCCESS"
    error_type: (
        Literal[
            "PROVIDER_RATE_LIMIT",
            "PROVIDER_QUOTA_LIMIT",
            "PROVIDER_PARTIAL_RESPONSE",
            "VARIABLE_MISSING_OR_EMPTY",
            "PROVIDER_TIMEOUT",
            "PROVIDER_AUTH_ERROR",
            "PROVIDER_ERROR",
            "TEMPLATE_RENDER_ERROR",
            "UNKNOWN_ERROR",
        ]
        | None
    ) = None
    error_message: Annotated[str, Field(max_length=MAX_ERROR_MESSAGE_CHARS)] | None = None

    def fields(self) -> dict[str, Any]:
        """Every field but the score, as the rules take them."""
        fields = vars(self).copy()
        del fields["score"], fields["score_name"]
        return fields

    def given_score(self) -> Score | None:
        """The score that was given, even 0; None when it was left out."""
        if "score" not in self.model_fields_set:
            return None
        return Score(self.score_name or DEFAULT_SCORE_NAME, self.score)


class LogAnswer(BaseModel):
    """The answer to E1."""

    id: int
    request_id: int
    prompt_version: dict[str, Any] | None
    status: Status
    error_type: str | None
    error_message: str | None


class RequestLogAnswer(BaseModel):
    """A recorded request: every field of E1, and what the service knows of it."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    success: Literal[True] = True
    id: int
    request_id: int
    provider: str
    model: str
    input: dict[str, Any]
    output: dict[str, Any]
    request_start_time: str
    request_end_time: str
    parameters: dict[str, Any]
    tags: list[str]
    metadata: dict[str, str]
    prompt_name: str | None
    prompt_id: int | None
    prompt_version_number: int | None
    prompt_input_variables: dict[str, Any]
    input_tokens: int
    output_tokens: int
    price: float
    function_name: str
    score: int | None
    api_type: str | None
    status: Status
    error_type: str | None
    error_message: str | None
    scores: dict[str, int]
    latency_ms: float
    prompt_blueprint: dict[str, Any] | None
    created_at: str


class DeletedLogsAnswer(Answer):
    """How many logged requests were deleted."""

    success: Literal[True] = True
    deleted_count: int


LOG_REQUEST: TypeAdapter[LogRequest] = TypeAdapter(LogRequest)
