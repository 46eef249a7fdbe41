"""Pages by number, with the counts and neighbours that clients of such lists read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
HIGHEST_PAGE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class NumberedPage(Generic[Item]):
    """Items `(page - 1) * per_page` on, of `total`; a page past the end is empty."""

    items: Sequence[Item]
    page: int
    per_page: int
    total: int

    @property
    def pages(self) -> int:
        return -(-self.total // self.per_page)

    @property
    def next_num(self) -> int | None:
        return self.page + 1 if self.page < self.pages else None

    @property
    def prev_num(self) -> int | None:
        return self.page - 1 if self.page > 1 else None
