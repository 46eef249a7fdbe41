"""Wire shapes of the prompt registry (E4, E5, reading and rendering)."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, field_validator

from api.schemas.base import Answer, Body, Name, TolerantBody, WireInt, example
from api.schemas.blueprints import TemplateBlueprint, TemplateMetadata, stored_blueprint
from storage.domain.prompts import ExternalId, PromptVersion, Publication, ReleaseLabel
from storage.templates import Rendered

Tag = Annotated[str, StringConstraints(max_length=512)]

_BLUEPRINT = {
    "type": "completion",
    "template_format": "f-string",
    "content": [{"type": "text", "text": "Answer {question} in one sentence."}],
    "input_variables": ["question"],
}
_METADATA = {"model": {"provider": "openai", "name": "gpt-4o-mini", "parameters": {"temperature": 0}}}
_VERSION = {
    "id": 1,
    "prompt_name": "support/answer",
    "prompt_version_id": 3,
    "version_number": 3,
    "workspace_id": 1,
    "folder_id": None,
    "tags": ["support"],
    "prompt_template": _BLUEPRINT,
    "metadata": _METADATA,
    "commit_message": "Shorter answers",
    "release_labels": ["prod"],
    "external_ids": [{"source": "git", "external_id": "answer.txt"}],
    "created_at": "2026-01-05T09:30:00Z",
}


class ExternalIdShape(TolerantBody):
    source: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    external_id: Annotated[str, StringConstraints(min_length=1, max_length=512)]


class PromptIdentity(TolerantBody):
    """Whose version is published; unknown keys are left unread, as clients repeat the whole body here."""

    prompt_name: Name
    tags: list[Tag] | None = None
    folder_id: WireInt | None = None
    workspace_id: WireInt | None = None
    release_labels: list[Name] | None = None
    external_ids: list[ExternalIdShape] | None = None


class VersionContent(TolerantBody):
    """What is published; unknown keys are left unread, as clients repeat the whole body here."""

    prompt_template: TemplateBlueprint
    commit_message: Annotated[str, StringConstraints(max_length=72)] | None = None
    metadata: TemplateMetadata | None = None


class PublishBody(TolerantBody):
    """Body of E4."""

    model_config = example(
        {
            "prompt_template": {"prompt_name": "support/answer", "tags": ["support"]},
            "prompt_version": {
                "prompt_template": {
                    "type": "completion",
                    "content": [{"type": "text", "text": "Answer {question} in one sentence."}],
                },
                "metadata": _METADATA,
                "commit_message": "Shorter answers",
            },
            "release_labels": ["prod"],
            "external_ids": [{"source": "git", "external_id": "answer.txt"}],
        }
    )

    prompt_template: PromptIdentity
    prompt_version: VersionContent
    release_labels: list[Name] | None = None
    external_ids: list[ExternalIdShape] | None = None

    def publication(self) -> Publication:
        identity, content = self.prompt_template, self.prompt_version
        labels = identity.release_labels if self.release_labels is None else self.release_labels
        external_ids = identity.external_ids if self.external_ids is None else self.external_ids
        return Publication(
            prompt_name=identity.prompt_name,
            blueprint=stored_blueprint(content.prompt_template),
            tags=None if identity.tags is None else tuple(identity.tags),
            folder_id=identity.folder_id,
            metadata=None if content.metadata is None else content.metadata.model_dump(exclude_unset=True),
            commit_message=content.commit_message,
            release_labels=tuple(labels or ()),
            external_ids=tuple(ExternalId(pair.source, pair.external_id) for pair in external_ids or ()),
        )


class TemplateVersion(Answer):
    """One version of a prompt, as published."""

    model_config = example(_VERSION)

    id: int = Field(description="Id of the prompt; stays over its versions.")
    prompt_name: str
    prompt_version_id: int
    version_number: int
    workspace_id: int
    folder_id: int | None
    tags: list[str]
    prompt_template: dict[str, Any]
    metadata: dict[str, Any] | None
    commit_message: str | None
    release_labels: list[str] = Field(description="Labels that name this version now.")
    external_ids: list[ExternalIdShape]
    created_at: datetime

    @classmethod
    def of(cls, version: PromptVersion) -> Self:
        return cls(**_fields(version, version.blueprint))


class PromptEdit(Body):
    """What is changed of a prompt as a whole; absent or null leaves it, but a null folder is the root."""

    model_config = example({"prompt_name": "support/reply", "tags": ["support"], "folder_id": None})

    prompt_name: Name | None = None
    tags: list[Tag] | None = None
    folder_id: WireInt | None = None
    workspace_id: WireInt | None = None

    def changes(self) -> dict[str, Any]:
        given: dict[str, Any] = {"name": self.prompt_name, "tags": self.tags}
        changes = {key: value for key, value in given.items() if value is not None}
        if "folder_id" in self.model_fields_set:
            changes["folder_id"] = self.folder_id
        return changes


class RenderBody(TolerantBody):
    """Which version, and what fills its variables; without `input_variables` its texts stay as written."""

    model_config = example({"label": "prod", "input_variables": {"question": "What is Parquet?"}})

    version: WireInt | None = Field(default=None, description="Number of the version.")
    label: Name | None = Field(default=None, description="Release label; not together with `version`.")
    input_variables: dict[str, Any] | None = None
    provider: str | None = Field(default=None, description="Replaces the provider of the metadata.")
    model: str | None = Field(default=None, description="Replaces the model of the metadata.")
    model_parameter_overrides: dict[str, Any] | None = Field(
        default=None, description="Parameters that win over those of the metadata, in `llm_kwargs`."
    )
    skip_input_variable_rendering: bool | None = None
    workspace_id: WireInt | None = None

    @field_validator("label")
    @classmethod
    def _one_of_both(cls, label: str | None, info: Any) -> str | None:
        if label is not None and info.data.get("version") is not None:
            raise ValueError("give either `version` or `label`")
        return label

    @property
    def values(self) -> dict[str, Any] | None:
        return None if self.skip_input_variable_rendering else self.input_variables


class RenderedTemplate(TemplateVersion):
    """One version of a prompt, its texts filled in."""

    model_config = example(
        _VERSION
        | {
            "prompt_template": _BLUEPRINT
            | {"content": [{"type": "text", "text": "Answer What is Parquet? in one sentence."}]},
            "version": 3,
            "llm_kwargs": {
                "model": "gpt-4o-mini",
                "temperature": 0,
                "prompt": "Answer What is Parquet? in one sentence.",
            },
            "warning": None,
        }
    )

    version: int = Field(description="As `version_number`.")
    llm_kwargs: dict[str, Any] | None = Field(
        description="Arguments of the provider's own client; null when no model is named."
    )
    warning: str | None = Field(description="Names variables that are missing or unused.")

    @classmethod
    def of_rendered(cls, rendered: Rendered) -> Self:
        version = rendered.version
        return cls(
            **_fields(version, rendered.blueprint),
            version=version.number,
            llm_kwargs=rendered.llm_kwargs,
            warning=rendered.warning,
        )


class LabelEntry(Answer):
    """A release label and the version that it names (2.13)."""

    prompt_version_id: int
    prompt_version_number: int
    release_label: str
    release_label_id: int

    @classmethod
    def of(cls, label: ReleaseLabel) -> Self:
        return cls(
            prompt_version_id=label.prompt_version_id,
            prompt_version_number=label.prompt_version_number,
            release_label=label.name,
            release_label_id=label.id,
        )


class LabelList(Answer):
    model_config = example(
        {
            "release_labels": [
                {
                    "prompt_version_id": 3,
                    "prompt_version_number": 3,
                    "release_label": "prod",
                    "release_label_id": 1,
                }
            ]
        }
    )

    release_labels: list[LabelEntry]


class TemplatePage(Answer):
    """One page of prompts, each at its latest version, or at the one that the wanted label names."""

    model_config = example({"items": [_VERSION], "page": 1, "per_page": 30, "total": 1, "pages": 1})

    items: list[TemplateVersion]
    page: int
    per_page: int
    total: int
    pages: int


def _fields(version: PromptVersion, blueprint: dict[str, Any]) -> dict[str, Any]:
    prompt = version.prompt
    return {
        "id": prompt.id,
        "prompt_name": prompt.name,
        "prompt_version_id": version.id,
        "version_number": version.number,
        "workspace_id": prompt.workspace_id,
        "folder_id": prompt.folder_id,
        "tags": list(prompt.tags),
        "prompt_template": blueprint,
        "metadata": version.metadata,
        "commit_message": version.commit_message,
        "release_labels": list(version.release_labels),
        "external_ids": [
            {"source": pair.source, "external_id": pair.external_id} for pair in version.external_ids
        ],
        "created_at": version.created_at,
    }
