"""The body of `/track-request`: a call as client libraries record it, turned into the body of E1."""

from typing import Any, Literal

from pydantic import Field

from api.json_body import validate_value
from api.schemas.base import Answer, Name, WireInt, example
from api.schemas.request_logs import LOG_REQUEST, LogRequest, MetadataKey, Tag
from api.schemas.tracking import LegacyBody, LegacyId
from storage.domain.calls.read import provider_of, read_call
from storage.domain.log_patches import GROUP_KEY
from storage.prices import price_of

SPAN_KEY = "span_id"
# What E1 is told as it is; its own rules look at it.
_AS_GIVEN = frozenset(
    {
        "request_start_time",
        "request_end_time",
        "tags",
        "prompt_id",
        "prompt_name",
        "prompt_input_variables",
        "status",
        "error_type",
        "error_message",
        "score",
        "score_name",
    }
)
_EXAMPLE = {
    "api_key": "pl_...",
    "function_name": "openai.chat.completions.create",
    "provider_type": "openai",
    "args": [],
    "kwargs": {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": "How many legs has a spider?"}],
    },
    "tags": ["tour"],
    "request_response": {
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Eight."}}],
        "usage": {"prompt_tokens": 14, "completion_tokens": 3},
    },
    "request_start_time": 1767605400.0,
    "request_end_time": 1767605401.25,
    "metadata": {"user": "ada"},
}


class TrackRequest(LegacyBody):  # type: ignore[no-redef]  # the plugin spells an initializer that takes them
    """A call of a model: the function that was called, its arguments, and what it returned."""

    model_config = LegacyBody.model_config | example(_EXAMPLE)

    function_name: str | None = None
    provider_type: str | None = None
    positional: list[Any] | None = Field(default=None, validation_alias="args")
    named: dict[str, Any] | None = Field(default=None, validation_alias="kwargs")
    tags: list[Tag] | None = None
    request_response: Any = None
    request_start_time: str | float = Field(description="ISO 8601, or seconds or milliseconds since 1970.")
    request_end_time: str | float = Field(description="As `request_start_time`.")
    metadata: dict[MetadataKey, str] | None = None
    prompt_id: WireInt | None = None
    prompt_name: Name | None = None
    prompt_version: WireInt | None = Field(default=None, description="Number of the prompt's version.")
    prompt_input_variables: dict[str, Any] | None = None
    group_id: LegacyId | None = None
    span_id: str | None = None
    status: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    score: int | None = None
    score_name: str | None = None
    return_prompt_blueprint: bool | None = None

    def log(self) -> LogRequest:
        """Return what E1 is to record.

        Raises:
            Invalid: a value does not fit; it is named by its place in what E1 takes.
        """
        function_name = self.function_name or ""
        provider = provider_of(function_name, self.provider_type)
        call = read_call(function_name, provider, self.named or {}, self.request_response)
        given = {name: value for name in _AS_GIVEN if (value := getattr(self, name)) is not None}
        return validate_value(
            LOG_REQUEST,
            {
                **given,
                "provider": provider,
                "model": call.model or "unknown",
                "input": call.input,
                "output": call.output,
                "parameters": {**call.parameters, **({"args": self.positional} if self.positional else {})},
                "metadata": self._metadata(),
                "prompt_version_number": self.prompt_version,
                "input_tokens": call.usage.input,
                "output_tokens": call.usage.output,
                "price": price_of(provider, call.model, call.usage, answered_by=call.answered_by),
                "function_name": function_name,
                "api_type": call.api_type,
            },
        )

    def _metadata(self) -> dict[str, str]:
        metadata = dict(self.metadata or {})
        if self.group_id is not None:
            metadata[GROUP_KEY] = str(self.group_id)
        if self.span_id:
            metadata[SPAN_KEY] = self.span_id
        return metadata


class TrackedRequest(Answer):
    """The log that was made, and the blueprint of its exchange (null: input and output differ in type)."""

    success: Literal[True] = True
    request_id: int
    prompt_blueprint: dict[str, Any] | None
