"""How a configuration names other columns: by title or id when it is written, by id when it is kept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from storage.domain.errors import InvalidConfig
from storage.domain.shapes import Schema

VALUE = "value"


class Edge(TypedDict):
    """A dependency as the wire has it: what is read, and for which key of the configuration."""

    column_id: str
    reference_type: str
    config_key: str
    config_meta: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CodeReads:
    """The titles that a piece of code reads of a row by name, and whether it reads others by other means."""

    titles: tuple[str, ...]
    others: bool = False


ReadCode = Callable[[str, str], CodeReads | None]
"""(language, code) -> what it reads; None where only the configuration can tell. Raises InvalidConfig."""


@dataclass(slots=True)
class Binder:
    """Turns names of columns into ids and notes the edges; `find` knows titles and ids of the sheet.
    It returns (id, title).

    `find_elsewhere` knows columns of other sheets by (table id, sheet id, column id), all as text;
    `find_like` returns the id of the only column whose title is like a name but for the case of its letters.
    """

    find: Callable[[str], tuple[str, str] | None]
    find_elsewhere: Callable[[str, str, str], str | None] = lambda *_: None
    read_code: ReadCode = lambda *_: None
    find_like: Callable[[str], str | None] = lambda _: None
    edges: list[Edge] = field(default_factory=list)

    def source(self, name: str, key: str, *, named: bool = False, **meta: Any) -> str:
        """Return the id of the column that a title or an id means, and note that it is read.

        With `named` the edge tells the title that it has now, under which it goes on.

        Raises:
            InvalidConfig: the sheet has no such column.
        """
        found = self.find(name)
        if found is None:
            raise InvalidConfig(f"config.{key}: there is no column {name!r}")
        column_id, title = found
        self._note(column_id, key, {**meta, "variable_name": title} if named else meta)
        return column_id

    def sources(self, names: list[str], key: str = "sources", *, named: bool = False) -> list[str]:
        """As `source`, for a list: each edge tells its position."""
        return [self.source(name, key, named=named, position=at) for at, name in enumerate(names)]

    def mapping(self, given: Mapping[str, str], key: str) -> dict[str, str]:
        """As `source`, for {variable: name}: each edge tells its variable."""
        return {variable: self.source(name, key, variable_name=variable) for variable, name in given.items()}

    def elsewhere(self, place: Mapping[str, str], key: str) -> dict[str, str]:
        """As `source`, for a column of any sheet of the workspace.

        Raises:
            InvalidConfig: there is no such column.
        """
        ids = {name: place[name].lower() for name in ("table_id", "sheet_id", "column_id")}
        found = self.find_elsewhere(ids["table_id"], ids["sheet_id"], ids["column_id"])
        if found is None:
            raise InvalidConfig(f"config.{key}: no such column in the workspace")
        self._note(found, key, {"table_id": ids["table_id"], "sheet_id": ids["sheet_id"]})
        return {**ids, "column_id": found}

    def _note(self, column_id: str, key: str, meta: dict[str, Any]) -> None:
        edge = Edge(column_id=column_id, reference_type=VALUE, config_key=key, config_meta=meta)
        if edge not in self.edges:
            self.edges.append(edge)


@dataclass(frozen=True, slots=True)
class ColumnType:
    """One type: the JSON schema of its configuration, and what binds one that fits it.

    `bind` returns the configuration as it is stored. Raises InvalidConfig.
    """

    schema: Schema
    bind: Callable[[dict[str, Any], Binder], dict[str, Any]]


def config_schema(
    title: str, properties: Mapping[str, Schema], required: tuple[str, ...] = (), example: Any = None
) -> Schema:
    """Spell the schema of a configuration: these keys and no others."""
    shape: dict[str, Any] = {
        "title": title,
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    if required:
        shape["required"] = list(required)
    if example is not None:
        shape["examples"] = [example]
    return shape


SOURCE: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "description": "A column's title or id.",
}
SOURCES: Schema = {"type": "array", "items": SOURCE, "minItems": 1, "maxItems": 5000}
MAPPING: Schema = {"type": "object", "additionalProperties": SOURCE, "description": "Variable -> column."}
ENGINE: Schema = {
    "type": "object",
    "description": "Which model computes the cells.",
    "properties": {
        "provider": {"type": "string", "minLength": 1, "maxLength": 255},
        "model": {"type": "string", "minLength": 1, "maxLength": 255},
        "parameters": {"type": "object"},
    },
    "required": ["provider", "model"],
    "additionalProperties": False,
}
CACHE: Schema = {
    "type": "boolean",
    "description": "Whether an equal computation elsewhere answers; not where a temperature above 0 is set.",
}
