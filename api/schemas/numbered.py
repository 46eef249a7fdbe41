"""Pages by number with the fields of E27, and the parameters that ask for one."""

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, WithJsonSchema

from api.schemas.base import Answer
from storage.domain.errors import Malformed
from storage.domain.numbered_pages import HIGHEST_PAGE, NumberedPage

Item = TypeVar("Item")
Out = TypeVar("Out")
_MOST_PER_PAGE = 100
_MOST_DIGITS = 20


def _within(most: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        text = str(value)
        if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS or not 1 <= int(text) <= most:
            # no ValueError: that would be a 422 of one parameter, and this is a 400 of both
            raise Malformed("Invalid pagination parameters")
        return int(text)

    return check


def _number(most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


PageNumber = Annotated[int, BeforeValidator(_within(HIGHEST_PAGE)), WithJsonSchema(_number(HIGHEST_PAGE, 1))]
PerPage = Annotated[
    int, BeforeValidator(_within(_MOST_PER_PAGE)), WithJsonSchema(_number(_MOST_PER_PAGE, 30))
]


class NumberedPageOut(Answer, Generic[Out]):
    """A page by number; past the end it is empty."""

    items: list[Out]
    page: int
    per_page: int
    pages: int
    has_next: bool
    has_prev: bool
    total: int | None
    next_num: int | None
    prev_num: int | None


def numbered_page_out(page: NumberedPage[Item], spell: Callable[[Item], Out]) -> NumberedPageOut[Out]:
    """Render a page."""
    return NumberedPageOut[Any](
        items=[spell(item) for item in page.items],
        page=page.page,
        per_page=page.per_page,
        pages=page.pages,
        has_next=page.next_num is not None,
        has_prev=page.prev_num is not None,
        total=page.total,
        next_num=page.next_num,
        prev_num=page.prev_num,
    )
