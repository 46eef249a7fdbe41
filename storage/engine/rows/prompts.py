"""Rows of prompts and their versions."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from storage.domain.prompts import Prompt, PromptLink
from storage.engine.catalog import Connection, new_no
from storage.engine.lru import Lru
from storage.engine.schema import external_ids, prompt_labels, prompt_versions, prompts


class VersionRow(NamedTuple):
    """A version without its body; all None where there is none."""

    id: int
    version_number: int
    commit_message: str | None
    created_at: datetime


_VERSION_COLUMNS = [prompt_versions.c[name] for name in VersionRow._fields]


@dataclass(frozen=True, slots=True)
class Body:
    """What a version holds: its blueprint and the metadata of its model, with its size as JSON."""

    blueprint: dict[str, Any]
    metadata: dict[str, Any] | None
    size: int


Bodies = Lru[int, Body]
Expansions = Lru[Hashable, dict[str, Any]]
_REMEMBERED_BYTES = 32 << 20
_REMEMBERED_EXPANSION_BYTES = 16 << 20


def remembered_bodies() -> Bodies:
    """An empty memory of bodies by the id of their version."""
    return Lru(_REMEMBERED_BYTES, lambda body: body.size)


def remembered_expansions() -> Expansions:
    """An empty memory of blueprints whose snippets are in place, by what they were made of."""
    return Lru(_REMEMBERED_EXPANSION_BYTES, lambda blueprint: len(json.dumps(blueprint)))


def find_prompt(
    connection: Connection, workspace_id: int, *, prompt_id: int | None = None, name: str | None = None
) -> Prompt | None:
    """Find a prompt by its id, its name, or both."""
    wanted = {"prompt_id": prompt_id, "name": name}
    given = {key: value for key, value in wanted.items() if value is not None}
    found = connection.execute(_prompt_query(frozenset(given)), {"workspace_id": workspace_id, **given})
    row = found.mappings().first()
    return None if row is None else _prompt(row)


@cache
def _prompt_query(given: frozenset[str]) -> sa.Select[Any]:
    # made once for each choice: this is read for every render, and making it costs as much as running it
    return sa.select(prompts).where(*_is_prompt(given))


def _is_prompt(given: frozenset[str]) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = [prompts.c.workspace_id == sa.bindparam("workspace_id")]
    if "prompt_id" in given:
        where.append(prompts.c.id == sa.bindparam("prompt_id"))
    if "name" in given:
        where.append(prompts.c.name == sa.bindparam("name"))
    return where


def _prompt(row: Mapping[Any, Any]) -> Prompt:
    return Prompt(**{**row, "tags": tuple(row["tags"])})


def insert_prompt(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(prompts.insert().values(values)))


def update_prompt(connection: Connection, prompt_id: int, values: dict[str, Any]) -> None:
    connection.execute(prompts.update().where(prompts.c.id == prompt_id).values(values))


def delete_prompt_rows(connection: Connection, prompt_id: int) -> None:
    """Delete a prompt with its versions, labels and external ids; what includes it must be gone already."""
    is_its = (external_ids.c.kind == "prompt") & (external_ids.c.entity_id == prompt_id)
    connection.execute(external_ids.delete().where(is_its))
    connection.execute(prompt_labels.delete().where(prompt_labels.c.prompt_id == prompt_id))
    connection.execute(prompt_versions.delete().where(prompt_versions.c.prompt_id == prompt_id))
    connection.execute(prompts.delete().where(prompts.c.id == prompt_id))


def last_version_number(connection: Connection, prompt_id: int) -> int:
    query = sa.select(sa.func.max(prompt_versions.c.version_number)).where(
        prompt_versions.c.prompt_id == prompt_id
    )
    return connection.execute(query).scalar() or 0


def insert_version(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(prompt_versions.insert().values(values)))


def find_version(
    connection: Connection,
    workspace_id: int,
    *,
    prompt_id: int | None = None,
    name: str | None = None,
    number: int | None = None,
    label: str | None = None,
) -> tuple[Prompt, VersionRow | None] | None:
    """Find a prompt, and its version by number or by the label that points at it; neither means the latest.

    One query over unique indexes. The version lacks what can be large; `get_body` has that.
    """
    wanted = {"prompt_id": prompt_id, "name": name, "number": number, "label": label}
    given = {key: value for key, value in wanted.items() if value is not None}
    query = _version_query(frozenset(given))
    row = connection.execute(query, {"workspace_id": workspace_id, **given}).first()
    if row is None:
        return None
    of_prompt = dict(zip(prompts.c.keys(), row, strict=False))
    version = VersionRow(*row[len(of_prompt) :])
    return _prompt(of_prompt), version if version.id else None


@cache
def _version_query(given: frozenset[str]) -> sa.Select[Any]:
    version = prompt_versions.c
    joined: sa.FromClause = prompts
    on = version.prompt_id == prompts.c.id
    if "label" in given:
        has_label = (prompt_labels.c.prompt_id == prompts.c.id) & (
            prompt_labels.c.name == sa.bindparam("label")
        )
        joined = joined.outerjoin(prompt_labels, has_label)
        on = version.id == prompt_labels.c.prompt_version_id
    if "number" in given:
        on &= version.version_number == sa.bindparam("number")
    query = sa.select(*prompts.c, *_VERSION_COLUMNS).select_from(joined.outerjoin(prompt_versions, on))
    return query.where(*_is_prompt(given)).order_by(version.version_number.desc()).limit(1)


def get_body(connection: Connection, bodies: Bodies, version_id: int) -> Body:
    """Return what a version holds; it never changes, so `bodies` remembers it, and nobody may change it."""
    return bodies.get(version_id, lambda: _read_body(connection, version_id))


def _read_body(connection: Connection, version_id: int) -> Body:
    query = sa.select(
        sa.cast(prompt_versions.c.prompt_template, sa.Text), sa.cast(prompt_versions.c.metadata, sa.Text)
    ).where(prompt_versions.c.id == version_id)
    template, model = connection.execute(query).one()
    return Body(json.loads(template), json.loads(model or "null"), len(template) + len(model or ""))


def find_link(
    connection: Connection,
    workspace_id: int,
    *,
    prompt_id: int | None,
    name: str | None,
    number: int | None,
) -> PromptLink | None:
    """Find what a log refers to in one query over unique indexes."""
    version = prompt_versions
    joined = prompts.outerjoin(
        version, (version.c.prompt_id == prompts.c.id) & (version.c.version_number == number)
    )
    query = (
        sa.select(prompts.c.id, prompts.c.name, version.c.id, version.c.version_number)
        .select_from(joined)
        .where(prompts.c.workspace_id == workspace_id)
    )
    if prompt_id is not None:
        query = query.where(prompts.c.id == prompt_id)
    if name is not None:
        query = query.where(prompts.c.name == name)
    row = connection.execute(query).first()
    if row is None or (number is not None and row[2] is None):
        return None
    return PromptLink(*row)


def find_link_of_version(
    connection: Connection, workspace_id: int, *, version_id: int | None = None, label_id: int | None = None
) -> PromptLink | None:
    """Find the version of that id, or the one that the label of that id points at now."""
    query = (
        sa.select(prompts.c.id, prompts.c.name, prompt_versions.c.id, prompt_versions.c.version_number)
        .join(prompt_versions, prompt_versions.c.prompt_id == prompts.c.id)
        .where(prompts.c.workspace_id == workspace_id)
    )
    if label_id is not None:
        query = query.join(prompt_labels, prompt_labels.c.prompt_version_id == prompt_versions.c.id)
        query = query.where(prompt_labels.c.id == label_id)
    if version_id is not None:
        query = query.where(prompt_versions.c.id == version_id)
    row = connection.execute(query).first()
    return None if row is None else PromptLink(*row)


def select_prompt_page(
    connection: Connection,
    workspace_id: int,
    *,
    name: str | None,
    label: str | None,
    tags: Sequence[str],
    offset: int,
    limit: int,
) -> tuple[list[Prompt], int]:
    """Return prompts by name (a part of it, any case), label and tags (all of them), and how many match."""
    where = [prompts.c.workspace_id == workspace_id]
    if name is not None:
        where.append(prompts.c.name.icontains(name, autoescape=True))
    if label is not None:
        labelled = sa.select(prompt_labels.c.prompt_id).where(prompt_labels.c.name == label)
        where.append(prompts.c.id.in_(labelled))
    where += [_has_tag(tag) for tag in tags]
    total = connection.execute(sa.select(sa.func.count()).select_from(prompts).where(*where)).scalar_one()
    page = sa.select(prompts).where(*where).order_by(prompts.c.id.desc()).offset(offset).limit(limit)
    return [_prompt(row) for row in connection.execute(page).mappings()], total


def _has_tag(tag: str) -> sa.ColumnElement[bool]:
    each = sa.func.json_each(prompts.c.tags).table_valued("value")
    return sa.exists(sa.select(sa.literal(1)).select_from(each).where(each.c.value == tag))
