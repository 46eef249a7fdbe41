"""Pages by cursor: a cursor binds sort, order, filters and a place, and leads on or back.

It is signed, so that what comes back is what was given out; and a place, not an offset, so that what is
added or deleted meanwhile moves nothing.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Generic, Literal, TypeVar

from storage.domain.errors import InvalidCursor

Order = Literal["asc", "desc"]
Item = TypeVar("Item")
_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a client asks for; the limit was checked where it was read."""

    limit: int
    order: Order = "asc"
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """What to read: at most `limit` items beyond `position` (None: from the end that comes first).

    `descending` is the direction to read in; it is the reverse of the page's order when the way is back.
    """

    request: PageRequest
    sort: str
    filters_hash: str
    position: int | None
    backwards: bool

    @property
    def limit(self) -> int:
        """One more than the page holds: it says whether there is more."""
        return self.request.limit + 1

    def narrowed(self, limit: int) -> "Window":
        """Return this window for pages of fewer items."""
        return replace(self, request=replace(self.request, limit=limit))

    @property
    def descending(self) -> bool:
        return (self.request.order == "desc") != self.backwards


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items in the order asked for, and the cursors to the pages beside it."""

    items: Sequence[Item]
    limit: int
    next_cursor: str | None
    prev_cursor: str | None

    @property
    def has_more(self) -> bool:
        return self.next_cursor is not None


def plan_page(key: bytes, request: PageRequest, *, sort: str, filters: Mapping[str, Any]) -> Window:
    """Say what to read for a request; `key` has 32 bytes, `filters` are JSON values.

    Raises:
        InvalidCursor: the cursor was not given out for this sort, order and these filters.
    """
    filters_hash = _hash_of(filters)
    if request.cursor is None:
        return Window(request, sort, filters_hash, None, backwards=False)
    place = _opened(key, request.cursor)
    if place[:3] != [sort, request.order, filters_hash]:
        raise InvalidCursor("The cursor belongs to another list, sort, order or filter")
    return Window(request, sort, filters_hash, place[3], backwards=place[4])


def page_of(
    key: bytes, window: Window, found: Sequence[Item], position_of: Callable[[Item], int]
) -> Page[Item]:
    """Make a page of what was read for a window, in the direction that it was read."""
    more = len(found) > window.request.limit
    kept = list(found[: window.request.limit])
    if window.backwards:
        kept.reverse()
    leads_on = window.backwards or more
    leads_back = more if window.backwards else window.position is not None

    def cursor(item: Item, *, backwards: bool) -> str:
        place = [window.sort, window.request.order, window.filters_hash, position_of(item), backwards]
        return _sealed(key, place)

    return Page(
        items=kept,
        limit=window.request.limit,
        next_cursor=cursor(kept[-1], backwards=False) if kept and leads_on else None,
        prev_cursor=cursor(kept[0], backwards=True) if kept and leads_back else None,
    )


def _hash_of(filters: Mapping[str, Any]) -> str:
    given = {name: value for name, value in filters.items() if value is not None}
    return blake2b(json.dumps(given, sort_keys=True).encode(), digest_size=12).hexdigest()


def _sealed(key: bytes, place: list[Any]) -> str:
    spelled = json.dumps(place, separators=(",", ":")).encode()
    return urlsafe_b64encode(_tag(key, spelled) + spelled).decode().rstrip("=")


def _opened(key: bytes, cursor: str) -> list[Any]:
    try:
        raw = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
    except (Base64Error, ValueError) as error:
        raise InvalidCursor("The cursor is none that was given out") from error
    tag, spelled = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    if not compare_digest(tag, _tag(key, spelled)):
        raise InvalidCursor("The cursor is none that was given out")
    place: list[Any] = json.loads(spelled)
    return place


def _tag(key: bytes, spelled: bytes) -> bytes:
    return blake2b(spelled, digest_size=_TAG_BYTES, key=key, person=b"cursor").digest()
