"""Wire shapes of dataset groups, their versions and drafts (2.11, E22-E25)."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from api.schemas.base import Answer, Body, WireInt, example
from api.schemas.filters import BodyGroup, FreeText, SortBy, SortOrder
from api.schemas.moments import LastMoment, Moment
from api.schemas.new_sheets import FileContent, Title
from api.schemas.pages import Pagination
from api.schemas.templates import ExternalIdShape
from storage.domain.datasets import Dataset, DatasetGroup
from storage.domain.drafts import DraftState
from storage.domain.history import MOST_REQUESTS
from storage.domain.numbered_pages import NumberedPage
from storage.domain.prompts import MAX_INTEGER, ExternalId
from storage.domain.rows import RowPage
from storage.domain.tables import Unchanged

Id = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
_ENDINGS = (".csv", ".json")
_FILE = {
    "dataset_group_id": 7,
    "file_name": "questions.csv",
    "file_content_base64": "cXVlc3Rpb24sYW5zd2VyDQpXaGF0IGlzIDIgKyAyPyw0DQo=",
}


def _check_ending(name: str) -> str:
    if not name.lower().endswith(_ENDINGS):
        raise ValueError("must end in .csv or .json")
    return name


class GroupBody(Body):
    """A dataset group to make; it has no versions yet, and no draft."""

    model_config = example(
        {"name": "Questions", "external_ids": [{"source": "git", "external_id": "questions.csv"}]}
    )

    name: Title
    folder_id: WireInt | None = None
    external_ids: list[ExternalIdShape] | None = None
    workspace_id: WireInt | None = None

    def pairs(self) -> tuple[ExternalId, ...]:
        return tuple(ExternalId(pair.source, pair.external_id) for pair in self.external_ids or ())


class GroupUpdate(Body):
    """What of a group to change; `folder_id` null moves it to the root."""

    model_config = example({"name": "Hard questions", "folder_id": None})

    name: Title | None = None
    folder_id: WireInt | None = None

    @property
    def folder(self) -> int | Unchanged | None:
        return self.folder_id if "folder_id" in self.model_fields_set else Unchanged.UNCHANGED


class GroupOut(Answer):
    """A dataset group."""

    id: int
    workspace_id: int
    name: str
    is_deleted: bool
    folder_id: int | None
    user_id: int
    external_ids: list[ExternalIdShape]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, group: DatasetGroup) -> Self:
        return cls(
            id=group.id,
            workspace_id=group.workspace_id,
            name=group.name,
            is_deleted=group.is_deleted,
            folder_id=group.folder_id,
            user_id=group.user_id,
            external_ids=_pairs(group),
            created_at=group.created_at,
            updated_at=group.updated_at,
        )


class GroupAnswer(Answer):
    success: Literal[True] = True
    message: str
    dataset_group: GroupOut


def _pairs(group: DatasetGroup) -> list[ExternalIdShape]:
    return [ExternalIdShape(source=one.source, external_id=one.external_id) for one in group.external_ids]


class InWorkspace(Body):
    """What every body here may say."""

    workspace_id: Annotated[WireInt | None, Field(description="That of the key, if given.")] = None


class FromFileBody(InWorkspace):
    """Body of E22: a CSV or JSON file of at most 100 MB that becomes the group's next version."""

    model_config = example(_FILE)

    dataset_group_id: Id
    file_name: Annotated[Title, AfterValidator(_check_ending)]
    file_content_base64: Annotated[FileContent, Field(min_length=1)]


class FromFilterBody(InWorkspace):
    """A dynamic dataset: the requests that match, as they stand, become the group's next version."""

    model_config = example(
        {
            "dataset_group_id": 7,
            "filter_group": {
                "logic": "AND",
                "filters": [{"field": "status", "operator": "is", "value": "ERROR"}],
            },
            "variables_to_parse": ["question"],
        }
    )

    dataset_group_id: Id
    filter_group: BodyGroup | None = None
    q: FreeText | None = None
    prompt_id: Id | None = None
    prompt_version_id: Id | None = None
    prompt_label_id: Annotated[Id | None, Field(description="The version that it names when read.")] = None
    start_time: Annotated[Moment | None, Field(description="Of request_start_time, inclusive.")] = None
    end_time: Annotated[LastMoment | None, Field(description="Of request_start_time, inclusive.")] = None
    sort_by: SortBy | None = None
    sort_order: SortOrder | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    variables_to_parse: list[str] | None = None
    include_fields: list[str] | None = None

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.sort_order is None) != (self.sort_by is None):
            raise ValueError("sort_by and sort_order come together")
        if all(
            one is None
            for one in (self.filter_group, self.prompt_id, self.prompt_version_id, self.prompt_label_id)
        ):
            raise ValueError("filter_group, or the id of a prompt, version or label, must be given")
        return self

    def filter_params(self) -> dict[str, Any]:
        """What is kept of it, as it was sent."""
        given = self.model_dump(
            mode="json", exclude={"dataset_group_id", "filter_group", "workspace_id"}, exclude_none=True
        )
        if self.filter_group is not None:
            given["filter_group"] = json.loads(self.filter_group.spelled)
        return given


class GroupIdBody(InWorkspace):
    """Body of E24."""

    model_config = example({"dataset_group_id": 7})

    dataset_group_id: Id


class CreateDraftBody(GroupIdBody):
    """Body of E23; with a source, its rows are copied into the draft."""

    model_config = example({"dataset_group_id": 7, "source_dataset_id": 31})

    source_dataset_id: Id | None = None


class AddRowsBody(GroupIdBody):
    """Rows for the draft, by title; a title that is new becomes a column."""

    model_config = example(
        {"dataset_group_id": 7, "rows": [{"question": "What is 6 times 7?", "answer": 42}]}
    )

    rows: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]


class DatasetQueued(Answer):
    """Answer of E22: the draft that the rows come into."""

    success: Literal[True] = True
    message: str
    dataset_id: int


class DraftAnswer(Answer):
    """Answer of E23 and E24."""

    success: Literal[True] = True
    message: str
    draft_dataset_id: int


class RowsAddedAnswer(DraftAnswer):
    row_count: int


class GroupRef(Answer):
    id: int
    name: str
    workspace_id: int
    is_deleted: bool


class DatasetOut(Answer):
    """A version of a group, or its draft (`version_number` -1), of which `draft_state` says what it does.

    `filter_params` is empty but of dynamic datasets.
    """

    id: int
    dataset_group_id: int
    version_number: int
    column_names: list[str]
    row_count: int
    is_deleted: bool
    draft_state: DraftState | None
    user_id: int
    filter_params: dict[str, Any]
    dataset_group: GroupRef
    external_ids: list[ExternalIdShape]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        group = dataset.group
        return cls(
            id=dataset.id,
            dataset_group_id=group.id,
            version_number=dataset.version_number,
            column_names=list(dataset.column_names),
            row_count=dataset.row_count,
            is_deleted=dataset.is_deleted,
            draft_state=dataset.draft_state if dataset.is_draft else None,
            user_id=dataset.user_id,
            filter_params=dict(dataset.filter_params or {}),
            dataset_group=GroupRef(
                id=group.id, name=group.name, workspace_id=group.workspace_id, is_deleted=group.is_deleted
            ),
            external_ids=_pairs(group),
            created_at=dataset.created_at,
            updated_at=dataset.updated_at,
        )


class DatasetAnswer(Answer):
    success: Literal[True] = True
    dataset: DatasetOut


class DatasetList(Answer):
    """Answer of E25; past the end a page is empty."""

    success: Literal[True] = True
    message: str
    datasets: list[DatasetOut]
    page: int
    per_page: int
    total: int
    pages: int

    @classmethod
    def of(cls, page: NumberedPage[Dataset]) -> Self:
        return cls(
            message=f"{page.total} datasets",
            datasets=[DatasetOut.of(one) for one in page.items],
            page=page.page,
            per_page=page.per_page,
            total=page.total,
            pages=page.pages,
        )


class DatasetRowOut(Answer):
    """A row; `values` by title."""

    row_index: int
    values: dict[str, Any]


class DatasetRowsAnswer(Answer):
    """A page of rows; `row_count` is that of the whole dataset."""

    success: Literal[True] = True
    dataset_id: int
    data: list[DatasetRowOut]
    column_names: list[str]
    row_count: int
    pagination: Pagination
    count: int


def spell_dataset_rows(found: RowPage) -> dict[str, Any]:
    """Spell a page of rows as objects by title, in the order of the columns."""
    titles = [column.title for column in found.columns]
    return {
        "success": True,
        "data": [
            {"row_index": row.row_index, "values": _values(titles, [cell.value for cell in row.cells])}
            for row in found.page.items
        ],
        "column_names": titles,
        "row_count": found.row_count,
    }


def _values(titles: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(titles, values, strict=True))
