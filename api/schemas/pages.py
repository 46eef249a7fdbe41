"""Pages by cursor, as every list of that kind answers."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Query

from api.schemas.base import Answer
from storage.domain.paging import Page

Item = TypeVar("Item")
Out = TypeVar("Out")

Cursor = Annotated[str | None, Query(description="Opaque; from `pagination` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=100, description="Items a page.")]
LongLimit = Annotated[int, Query(ge=1, le=1000, description="Items a page.")]
Order = Annotated[Literal["asc", "desc"], Query()]


class Pagination(Answer):
    next_cursor: str | None
    prev_cursor: str | None
    has_more: bool
    limit: int

    @classmethod
    def of(cls, page: Page[Any]) -> "Pagination":
        return cls(
            next_cursor=page.next_cursor,
            prev_cursor=page.prev_cursor,
            has_more=page.has_more,
            limit=page.limit,
        )


class PageOut(Answer, Generic[Out]):
    """A page; `filters` are those applied, `count` the items on it."""

    success: Literal[True] = True
    data: list[Out]
    pagination: Pagination
    filters: dict[str, Any]
    count: int


def page_out(page: Page[Item], spell: Callable[[Item], Out], **filters: Any) -> PageOut[Out]:
    """Render a page; a filter that is None was not applied."""
    return PageOut[Any](
        data=[spell(item) for item in page.items],
        pagination=Pagination.of(page),
        filters={name: value for name, value in filters.items() if value is not None},
        count=len(page.items),
    )
