"""Wire shapes of workflows (2.12, E27) and their versions."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from api.schemas.base import Answer, KeptBody, Name, WireInt, example
from api.schemas.templates import ExternalIdShape
from storage.domain.prompts import ExternalId
from storage.domain.workflows import SavedWorkflow, Workflow, WorkflowLabel, WorkflowVersion

_DEFINITION: dict[str, Any] = {
    "nodes": [
        {"name": "classify", "node_type": "PROMPT_TEMPLATE", "configuration": {}, "is_output_node": False},
        {"name": "answer", "node_type": "PROMPT_TEMPLATE", "configuration": {}, "is_output_node": True},
    ],
    "edges": [{"source_node_name": "classify", "target_node_name": "answer"}],
    "required_input_variables": {"question": "string"},
}
_WORKFLOW: dict[str, Any] = {
    "id": 3,
    "workspace_id": 1,
    "name": "Answer tickets",
    "is_deleted": False,
    "release_labels": ["prod"],
    "user_id": 1,
    "latest_version_number": 2,
    "external_ids": [{"source": "git", "external_id": "tickets.yaml"}],
    "folder_id": None,
    "created_at": "2026-01-05T09:30:00Z",
    "updated_at": "2026-01-06T11:00:00Z",
}
_LABEL = {
    "workflow_version_id": 7,
    "workflow_version_number": 2,
    "release_label": "prod",
    "release_label_id": 4,
}


class WorkflowBody(KeptBody):
    """A version of a workflow: `name` makes the workflow where there is none.

    Nodes, edges and every other key that is sent are kept as they came, and returned.
    """

    model_config = example({"name": "Answer tickets", **_DEFINITION, "release_labels": ["prod"]})

    name: Name | None = None
    workflow_id: Annotated[WireInt | None, Field(ge=1, description="Instead of `name`: one there is.")] = None
    workflow_name: Annotated[Name | None, Field(description="Instead of `name`: one there is.")] = None
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]] = Field(default_factory=list)
    required_input_variables: dict[str, Any] | None = None
    commit_message: Annotated[str, StringConstraints(max_length=72)] | None = None
    release_labels: list[Name] | None = None
    external_ids: list[ExternalIdShape] | None = None
    folder_id: WireInt | None = None
    workspace_id: WireInt | None = None

    @model_validator(mode="after")
    def _one_identity(self) -> Self:
        if sum(given is not None for given in (self.name, self.workflow_id, self.workflow_name)) != 1:
            raise ValueError("give one of `name`, `workflow_id` and `workflow_name`")
        return self

    def saved(self) -> SavedWorkflow:
        more = {key: value for key, value in (self.model_extra or {}).items() if key not in _OURS}
        return SavedWorkflow(
            definition=more
            | {
                "nodes": self.nodes,
                "edges": self.edges,
                "required_input_variables": self.required_input_variables,
            },
            name=self.workflow_name if self.name is None else self.name,
            workflow_id=self.workflow_id,
            makes=self.name is not None,
            folder_id=self.folder_id,
            commit_message=self.commit_message,
            release_labels=tuple(self.release_labels or ()),
            external_ids=tuple(ExternalId(pair.source, pair.external_id) for pair in self.external_ids or ()),
        )


class WorkflowOut(Answer):
    """A workflow over all its versions; `release_labels` are those of any version."""

    model_config = example(_WORKFLOW)

    id: int
    workspace_id: int
    name: str
    is_deleted: bool
    release_labels: list[str]
    user_id: int
    latest_version_number: int
    external_ids: list[ExternalIdShape]
    folder_id: int | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, workflow: Workflow) -> Self:
        return cls(**_facts(workflow))


class WorkflowVersionOut(BaseModel):
    """A workflow and one of its versions, whose every key is given back as it was sent."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_serialization_defaults_required=True,
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    **_WORKFLOW,
                    "workflow_id": 3,
                    "workflow_name": "Answer tickets",
                    "workflow_version_id": 7,
                    "version_number": 2,
                    "commit_message": None,
                    "version_created_at": "2026-01-06T11:00:00Z",
                    **_DEFINITION,
                }
            ]
        },
    )

    success: Literal[True] = True
    id: int
    workspace_id: int
    name: str
    is_deleted: bool
    release_labels: list[str] = Field(description="Labels of any version.")
    user_id: int
    latest_version_number: int
    external_ids: list[ExternalIdShape]
    folder_id: int | None
    created_at: datetime
    updated_at: datetime
    workflow_id: int = Field(description="The same as `id`.")
    workflow_name: str = Field(description="The same as `name`.")
    workflow_version_id: int
    version_number: int
    commit_message: str | None
    version_created_at: datetime
    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    required_input_variables: dict[str, Any] | None

    @classmethod
    def of(cls, version: WorkflowVersion) -> Self:
        workflow = version.workflow
        return cls(
            **version.definition
            | _facts(workflow)
            | {
                "workflow_id": workflow.id,
                "workflow_name": workflow.name,
                "workflow_version_id": version.id,
                "version_number": version.number,
                "commit_message": version.commit_message,
                "version_created_at": version.created_at,
            }
        )


# Facts that are ours to tell: what was read here may be sent again as it stands.
_OURS = frozenset(WorkflowVersionOut.model_fields)


def _facts(workflow: Workflow) -> dict[str, Any]:
    return {
        "id": workflow.id,
        "workspace_id": workflow.workspace_id,
        "name": workflow.name,
        # those that are deleted are not found
        "is_deleted": False,
        "release_labels": list(workflow.release_labels),
        "user_id": workflow.user_id,
        "latest_version_number": workflow.latest_version_number,
        "external_ids": [
            ExternalIdShape(source=pair.source, external_id=pair.external_id)
            for pair in workflow.external_ids
        ],
        "folder_id": workflow.folder_id,
        "created_at": workflow.created_at,
        "updated_at": workflow.updated_at,
    }


class WorkflowLabelEntry(Answer):
    workflow_version_id: int
    workflow_version_number: int
    release_label: str
    release_label_id: int

    @classmethod
    def of(cls, label: WorkflowLabel) -> Self:
        return cls(
            workflow_version_id=label.version_id,
            workflow_version_number=label.version_number,
            release_label=label.name,
            release_label_id=label.id,
        )


class WorkflowLabelList(Answer):
    model_config = example({"release_labels": [_LABEL]})

    release_labels: list[WorkflowLabelEntry]
