"""The configuration of a column, checked and bound to the columns that it names."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from storage.domain.blueprints import checked_blueprint
from storage.domain.column_types import TYPES, bind_config, find_disagreement
from storage.domain.column_types.binding import Binder, CodeReads, Edge
from storage.domain.column_types.code import LANGUAGES, PYTHON
from storage.domain.column_types.llm import schema_in
from storage.domain.columns import Column
from storage.domain.errors import DependencyCycle, InvalidConfig, Unguarded
from storage.domain.graph import find_cycle
from storage.domain.keys import Principal
from storage.domain.shapes import check_shape
from storage.engine.catalog import Connection
from storage.engine.rows.column_edges import (
    find_column_nos,
    find_place,
    replace_all_edges,
    select_places,
    select_sources,
)
from storage.sandbox import jinja2_of, read_code, schema_of
from storage.snippets import expand_inline
from storage.store import Store

Given = Mapping[str, Any]
MOST_CONFIG_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class Bound:
    """A configuration as it is kept, what it reads, and the numbers of these columns."""

    config: dict[str, Any]
    edges: list[Edge]
    source_nos: list[int]


def read_before(store: Store, who: Principal, kind: str, config: Given) -> CodeReads | None:
    """Find what the code of a configuration reads, before a transaction is opened: it may take a moment.

    Raises:
        InvalidConfig: the code or a prompt does not parse, or a response format holds no JSON schema.
        Unavailable: no worker became free.
    """
    if kind == "llm":
        _check_format(store, who, config.get("response_format"))
    if kind == "prompt_template" and "inline_template" in config:
        check_shape(config, TYPES[kind].schema)
        _check_prompt(store, who, config["inline_template"]["prompt_template"])
    code = config.get("code")
    if kind != "code" or not isinstance(code, str):
        return None
    language = config.get("language", PYTHON)
    return read_code(store, who, language, code) if language in LANGUAGES else None


def _check_format(store: Store, who: Principal, given: Any) -> None:
    schema = schema_in(given) if isinstance(given, dict) else None
    if schema is None:
        return
    # where there is no sandbox, the run finds out
    with suppress(Unguarded):
        schema_of(store, who, schema).inspect()


def _check_prompt(store: Store, who: Principal, blueprint: Given) -> None:
    try:
        with suppress(Unguarded):
            checked_blueprint(
                blueprint, jinja2_of(store, who), lambda stored: expand_inline(store, who, stored)
            )
    except InvalidConfig as error:
        parts = error.message.removeprefix("prompt_template")
        raise InvalidConfig(
            f"config.inline_template.prompt_template{parts if parts != error.message else f': {parts}'}"
        ) from error


def bind(
    connection: Connection,
    who: Principal,
    *,
    kind: str,
    config: Given,
    dependencies: Sequence[Given] | None,
    columns: Sequence[Column],
    code_reads: CodeReads | None,
) -> Bound:
    """Check a configuration against its type and bind it to the sheet's columns.

    Raises:
        InvalidConfig: it does not fit, a source is missing, or `dependencies` say something else.
    """

    def elsewhere(table_id: str, sheet_id: str, column_id: str) -> str | None:
        try:
            ids = UUID(table_id), UUID(sheet_id), UUID(column_id)
        except ValueError:
            return None
        found = find_place(connection, who.workspace_id, *ids)
        return None if found is None else str(found.id)

    binder = Binder(
        _finder(columns), elsewhere, lambda _language, _code: code_reads, find_like=_like_finder(columns)
    )
    stored, edges = bind_config(kind, config, binder)
    if dependencies is not None:
        check_dependencies(edges, dependencies)
    return Bound(stored, edges, source_nos(connection, edges))


def check_dependencies(edges: Sequence[Edge], given: Sequence[Given]) -> None:
    """Raise InvalidConfig unless dependencies that a client gave are those of the configuration."""
    problem = find_disagreement(list(edges), list(given))
    if problem:
        raise InvalidConfig(problem)


def source_nos(connection: Connection, edges: Sequence[Edge]) -> list[int]:
    """Return the numbers of the columns that edges name, as far as they are there."""
    ids = [UUID(edge["column_id"]) for edge in edges]
    found = find_column_nos(connection, ids)
    return [found[one] for one in dict.fromkeys(ids) if one in found]


def bind_again(connection: Connection, columns: Sequence[Column]) -> None:
    """Let columns that were brought back read what they name, also what is gone: it may be brought back, too.

    Raises:
        DependencyCycle: through other sheets one of them would read itself.
    """
    computed = [column for column in columns if column.computed]
    named = {one for column in computed for one in column.source_ids}
    known = find_column_nos(connection, named, deleted_too=True)
    reads = {column.no: [known[one] for one in column.source_ids if one in known] for column in computed}
    replace_all_edges(connection, reads)
    # one look at the whole graph, as there are thousands of columns
    cycle = find_cycle(select_sources(connection, list(reads)))
    if cycle is not None:
        raise DependencyCycle(_told(connection, cycle, {}))


def _finder(columns: Sequence[Column]) -> Any:
    by_title = {column.title: column for column in columns}
    by_id = {str(column.id): column for column in columns}

    def find(name: str) -> tuple[str, str] | None:
        found = by_title.get(name) or by_id.get(name.lower())
        return None if found is None else (str(found.id), found.title)

    return find


def _like_finder(columns: Sequence[Column]) -> Callable[[str], str | None]:
    def find(name: str) -> str | None:
        found = [column.id for column in columns if column.title.lower() == name.lower()]
        return str(found[0]) if len(found) == 1 else None

    return find


def check_acyclic(connection: Connection, column: Column, reads: Sequence[int]) -> None:
    """Raise DependencyCycle, with the titles on the way, if a column may not read these.

    The way may lead through other sheets.
    """
    graph = {**select_sources(connection, list(reads)), column.no: list(reads)}
    cycle = find_cycle(graph)
    if cycle is None:
        return
    at = cycle.index(column.no) if column.no in cycle else 0
    raise DependencyCycle(_told(connection, [*cycle[at:], *cycle[:at]], {column.no: column.title}))


def _told(connection: Connection, cycle: Sequence[int], known: Mapping[int, str]) -> str:
    """Say a cycle by titles."""
    titles = {no: place.title for no, place in select_places(connection, cycle).items()} | dict(known)
    path = [titles.get(no, "?") for no in (*cycle, cycle[0])]
    shown = path if len(path) <= _SHOWN else [*path[: _SHOWN // 2], "...", *path[-_SHOWN // 2 :]]
    return f"The columns would read each other: {' -> '.join(shown)}"


_SHOWN = 20
