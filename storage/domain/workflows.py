"""Workflows of the registry: what is saved, what a version and a label are, how they are listed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from storage.domain.paging import Order
from storage.domain.prompts import ExternalId

WorkflowSort = Literal["created_at", "updated_at", "name", "id"]


@dataclass(frozen=True, slots=True)
class SavedWorkflow:
    """What is asked to be saved: a version of the workflow of an id, or of a name, made if `makes`."""

    definition: Mapping[str, Any]
    name: str | None = None
    workflow_id: int | None = None
    makes: bool = True
    folder_id: int | None = None
    commit_message: str | None = None
    release_labels: tuple[str, ...] = ()
    external_ids: tuple[ExternalId, ...] = ()


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow over all its versions (2.12); `release_labels` are those of any version."""

    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    latest_version_number: int
    created_at: datetime
    updated_at: datetime
    release_labels: tuple[str, ...] = ()
    external_ids: tuple[ExternalId, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkflowVersion:
    """One version with the workflow that it belongs to; the definition is as it was sent."""

    workflow: Workflow
    id: int
    number: int
    definition: dict[str, Any]
    commit_message: str | None
    user_id: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WorkflowLabel:
    """A name that points at one version of a workflow."""

    id: int
    name: str
    version_id: int
    version_number: int


@dataclass(frozen=True, slots=True)
class WorkflowQuery:
    """What E27 filters by, each inclusive; what is None is not asked for."""

    created_by_email: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    external_id: ExternalId | None = None
    sort_by: WorkflowSort = "created_at"
    sort_order: Order = "desc"
