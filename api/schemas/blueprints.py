"""Wire shapes of prompt blueprints as they are published: content blocks, messages, model metadata (2.3)."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from api.schemas.base import KeptBody, Name, WireInt, example

TemplateFormat = Literal["f-string", "jinja2"]


class Annotation(KeptBody):
    type: str | None = None
    title: str | None = None
    url: str | None = None
    start_index: WireInt | None = None
    end_index: WireInt | None = None
    cited_text: str | None = None
    encrypted_index: str | None = None


class ContentBlock(KeptBody):
    """One block of a content; keys of other kinds of block are kept as they come."""

    model_config = example({"type": "text", "text": "Answer {question} in one sentence."})

    type: str
    text: str | None = None
    id: str | None = None
    annotations: list[Annotation] | None = None
    thought_signature: str | None = None

    @model_validator(mode="after")
    def _text_block_has_text(self) -> "ContentBlock":
        if self.type == "text" and self.text is None:
            raise ValueError("a text block needs `text`, a string")
        return self


class TemplateMessage(KeptBody):
    role: Name
    content: list[ContentBlock] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    template_format: TemplateFormat | None = None

    @model_validator(mode="after")
    def _only_tool_calls_stand_without_content(self) -> "TemplateMessage":
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise ValueError("`content` must be an array of content blocks")
        return self


class CompletionTemplate(KeptBody):
    type: Literal["completion"] | None = None
    content: list[ContentBlock] = Field(default=[])
    input_variables: list[str] | None = None
    template_format: TemplateFormat | None = None


class ChatTemplate(KeptBody):
    type: Literal["chat"] | None = None
    messages: list[TemplateMessage] = Field(default=[])
    input_variables: list[str] | None = None
    template_format: TemplateFormat | None = None


def _kind(given: Any) -> Any:
    if not isinstance(given, dict):
        return getattr(given, "type", None)
    return given.get("type") or ("chat" if "messages" in given else "completion")


TemplateBlueprint = Annotated[
    Annotated[CompletionTemplate, Tag("completion")] | Annotated[ChatTemplate, Tag("chat")],
    Discriminator(_kind),
]


class ModelMetadata(KeptBody):
    provider: str | None = None
    name: str | None = None
    model_config_display_name: str | None = None
    base_model: str | None = None
    parameters: dict[str, Any] | None = None
    display_params: dict[str, Any] | None = None
    api_type: str | None = None


class TemplateMetadata(KeptBody):
    model_config = example(
        {"model": {"provider": "openai", "name": "gpt-4o-mini", "parameters": {"temperature": 0}}}
    )

    model: ModelMetadata | None = None


def stored_blueprint(given: CompletionTemplate | ChatTemplate) -> dict[str, Any]:
    """Spell a blueprint as it is kept: what was sent, with the content of tool calls an empty array."""
    kept = given.model_dump(exclude_unset=True)
    for message in kept.get("messages") or []:
        message["content"] = message.get("content") or []
    return kept
