"""A span as it arrives, and its attributes as they are read: what nobody took is left for the metadata."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class SpanEvent:
    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """One span; ids are hexadecimal (empty: none), times nanoseconds since 1970, attributes JSON values."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    events: Sequence[SpanEvent] = ()
    failed: bool = False
    status_message: str = ""
    resource: Mapping[str, Any] = field(default_factory=dict)


class Attributes:
    """Attributes of a span by name; what was asked for counts as taken, unless it could not be read."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._taken: set[str] = set()

    def get(self, *names: str) -> Any:
        """The first of these that is there; all of them count as taken. None: none is."""
        self._taken.update(names)
        return next((self._given[name] for name in names if self._given.get(name) is not None), None)

    def read(self, reader: Callable[[Any], Made | None], *names: str) -> Made | None:
        """What a reader makes of the first of these that it can read (None: it cannot); the rest is left."""
        made: Made | None = None
        for name in names:
            value = self._given.get(name)
            found = None if value is None else reader(value)
            if found is not None or value is None or value == "":
                self._taken.add(name)
            if made is None:
                made = found
        return made

    def text(self, *names: str) -> str | None:
        """As `read`, of those that are texts and not empty."""
        return self.read(lambda value: value if isinstance(value, str) and value else None, *names)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """One that is an object, or a text that holds one; empty: it is none."""
        return self.read(_mapping_in, name) or {}

    def items(self, name: str) -> Sequence[Any]:
        """One that is a list, or a text that holds one; empty: it is none."""
        return self.read(_items_in, name) or ()

    def json(self, name: str) -> Any:
        """One as it is; a text that holds JSON stands for what it holds."""
        return from_text(self.get(name))

    def tree(self, prefix: str) -> dict[str, Any]:
        """All attributes below a prefix as nested objects and lists (`a.0.b` is of a list)."""
        start = f"{prefix}."
        found = {name[len(start) :]: value for name, value in self._given.items() if name.startswith(start)}
        self._taken.update(start + name for name in found)
        made = nested(found)
        return made if isinstance(made, dict) else {}

    def listed(self, prefix: str) -> list[Any]:
        """All attributes below a prefix and a number (`prefix.0.role`) as a list."""
        start = f"{prefix}."
        found = {
            name[len(start) :]: value
            for name, value in self._given.items()
            if name.startswith(start) and name[len(start) : len(start) + 1].isdigit()
        }
        self._taken.update(start + name for name in found)
        made = nested(found)
        return made if isinstance(made, list) else []

    def rest(self) -> Iterator[tuple[str, Any]]:
        """What nobody asked for."""
        return ((name, value) for name, value in self._given.items() if name not in self._taken)


def _mapping_in(value: Any) -> Mapping[str, Any] | None:
    held = from_text(value)
    return held if isinstance(held, Mapping) else None


def _items_in(value: Any) -> Sequence[Any] | None:
    held = from_text(value)
    return held if isinstance(held, list) else None


def from_text(value: Any) -> Any:
    """What a text that looks like a JSON object or list holds; anything else as it is."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            held = json.loads(value, parse_constant=str)
            if "\\u" in value:  # which may spell what no text can hold
                json.dumps(held, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return value
        return held
    return value


_MOST_PARTS = 16


def nested(flat: Mapping[str, Any]) -> Any:
    """Turn dotted names into nested objects; one whose keys are all numbers is a list, in their order."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        parts = name.split(".", _MOST_PARTS)
        at = root
        for part in parts[:-1]:
            inner = at.setdefault(part, {})
            if not isinstance(inner, dict):
                inner = at[part] = {"": inner}
            at = inner
        at[parts[-1]] = value
    return _lists(root)


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    made = {name: _lists(inner) for name, inner in value.items()}
    if made and all(name.isascii() and name.isdigit() for name in made):
        return [made[name] for name in sorted(made, key=int)]
    return made
