"""Dataset groups, their versions and drafts: what each is, and how they are listed (2.11, E25)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from storage.domain.drafts import DRAFT_NUMBER, DraftState
from storage.domain.operations import DATASETS, Operation
from storage.domain.paging import Order
from storage.domain.prompts import ExternalId

DatasetSort = Literal["created_at", "updated_at", "name", "id"]
DatasetStatus = Literal["active", "deleted", "all"]
LinkKind = Literal["prompt", "prompt_version", "prompt_label"]


@dataclass(frozen=True, slots=True)
class DatasetGroup:
    """What versions belong to; `sheet_no` is the sheet that keeps its rows, once there are any."""

    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    user_id: int
    sheet_no: int | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    external_ids: tuple[ExternalId, ...] = ()

    @property
    def is_deleted(self) -> bool:
        return self.deleted_at is not None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A version, or the draft (number -1). `sheet_version` is the version of the group's sheet with its rows.

    `filter_params` is what a dynamic dataset asks of request logs; `state` and `operation_no` are a draft's.
    """

    id: int
    workspace_id: int
    group: DatasetGroup
    version_number: int
    state: str | None
    operation_no: int | None
    sheet_version: int | None
    column_names: tuple[str, ...]
    row_count: int
    filter_params: Mapping[str, Any] | None
    user_id: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None

    @property
    def is_draft(self) -> bool:
        return self.version_number == DRAFT_NUMBER

    @property
    def is_deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def draft_state(self) -> DraftState:
        return DraftState(self.state or DraftState.NONE)


@dataclass(frozen=True, slots=True)
class DatasetQuery:
    """What E25 filters by, each inclusive; what is None is not asked for. `links` name prompts of filters."""

    group_id: int | None = None
    links: tuple[tuple[LinkKind, int], ...] = ()
    report_id: int | None = None
    name: str | None = None
    status: DatasetStatus = "active"
    created_by_email: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    external_id: ExternalId | None = None
    sort_by: DatasetSort = "created_at"
    sort_order: Order = "desc"


def group_id_of(operation: Operation) -> int | None:
    """Return the dataset group that an operation works for; None when it works for none."""
    return int(operation.spec["dataset_group_id"]) if operation.kind in DATASETS else None
