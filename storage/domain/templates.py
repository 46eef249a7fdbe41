"""f-string templates: literal text and plain `{name}` fields, parsed strictly by our own rules.

`str.format` would walk attributes and indices of whatever it is given; here a field is a name and nothing
else, so a template can reach nothing but the values handed to it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.errors import InvalidConfig, LimitReached

F_STRING, JINJA2 = "f-string", "jinja2"
MAX_RENDERED = 8_388_608

# A letter or `_`, then letters, digits, `_`, `-` and single spaces: titles of columns are names as well.
_NAME = re.compile(r"[^\W\d](?:[\w-]| (?! ))*(?<! )")
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Field:
    """A place that a value fills."""

    name: str


Piece = str | Field
Template = tuple[Piece, ...]


def parse_template(text: str, where: str = "template") -> Template:
    """Parse an f-string template; `where` names it in the error.

    Raises:
        InvalidConfig: a brace stands alone, or a field is no plain name; names line and position, from 1.
    """
    pieces: list[Piece] = []
    at = 0
    while brace := _BRACE.search(text, at):
        start = brace.start()
        pieces.append(text[at:start])
        if text.startswith(brace.group() * 2, start):
            pieces.append(brace.group())
            at = start + 2
        elif brace.group() == "}":
            raise _unparsable(text, start, where, "a `}` stands alone; write `}}` for the character")
        else:
            field, at = _field(text, start, where)
            pieces.append(field)
    pieces.append(text[at:])
    return _joined(pieces)


def variables_of(template: Iterable[Piece]) -> tuple[str, ...]:
    """The names that a template reads, each once, in order of first sight."""
    return tuple(dict.fromkeys(piece.name for piece in template if isinstance(piece, Field)))


def render_template(template: Template, values: Mapping[str, Any]) -> str:
    """Fill the fields: text as it is, other values as compact JSON, a missing or null one as nothing.

    Raises:
        LimitReached: the text would be too long.
    """
    return Filling(values).render(template)


class Filling:
    """Fills templates with the same values: a value is spelled once, characters are counted before joined.

    A megabyte of fields and a megabyte of value would make a terabyte of text.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._spelled: dict[str, str] = {}
        self._left = MAX_RENDERED

    def render(self, template: Template, where: str = "template") -> str:
        """Return a text; raises as `render_template`, where all texts together are too long."""
        parts = [piece if isinstance(piece, str) else self._text(piece.name) for piece in template]
        self._left -= sum(map(len, parts))
        if self._left < 0:
            raise LimitReached("output", f"{where}: what is rendered is over {MAX_RENDERED} characters")
        return "".join(parts)

    def _text(self, name: str) -> str:
        if name not in self._spelled:
            self._spelled[name] = text_of(self._values.get(name))
        return self._spelled[name]


def text_of(value: Any) -> str:
    """Spell a value as it stands in rendered text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _field(text: str, start: int, where: str) -> tuple[Field, int]:
    end = text.find("}", start)
    if end < 0:
        raise _unparsable(text, start, where, "a `{` is never closed; write `{{` for the character")
    name = text[start + 1 : end]
    if not _NAME.fullmatch(name):
        raise _unparsable(text, start, where, _advice(name))
    return Field(name), end + 1


def _advice(name: str) -> str:
    if not name.strip():
        return "a field needs a name"
    if any(sign in name for sign in ".[!:"):
        return (
            f"`{{{_short(name)}}}` is no plain name: attributes, indices, conversions and format "
            "specifications are not taken; write `{{` and `}}` for the characters"
        )
    return (
        f"`{{{_short(name)}}}` is no name of letters, digits, `_`, `-` and single spaces; "
        "write `{{` and `}}` for the characters"
    )


def _short(name: str) -> str:
    return " ".join(name.split())[:40]


def _unparsable(text: str, at: int, where: str, why: str) -> InvalidConfig:
    line = text.count("\n", 0, at) + 1
    position = at - (text.rfind("\n", 0, at) + 1) + 1
    return InvalidConfig(f"{where}: line {line}, position {position}: {why}")


def _joined(pieces: list[Piece]) -> Template:
    """Join neighbouring literals and drop empty ones."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    return tuple(joined)
