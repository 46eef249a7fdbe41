"""Rows of prompts and their versions."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from storage.domain.prompts import Prompt, PromptLink
from storage.engine.catalog import Connection, new_no
from storage.engine.schema import prompt_labels, prompt_versions, prompts

VersionRow = sa.RowMapping


def find_prompt(
    connection: Connection, workspace_id: int, *, prompt_id: int | None = None, name: str | None = None
) -> Prompt | None:
    """Find a prompt by its id, its name, or both."""
    query = sa.select(prompts).where(prompts.c.workspace_id == workspace_id)
    if prompt_id is not None:
        query = query.where(prompts.c.id == prompt_id)
    if name is not None:
        query = query.where(prompts.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else _prompt(row)


def _prompt(row: sa.RowMapping) -> Prompt:
    return Prompt(**{**row, "tags": tuple(row["tags"])})


def insert_prompt(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(prompts.insert().values(values)))


def update_prompt(connection: Connection, prompt_id: int, values: dict[str, Any]) -> None:
    connection.execute(prompts.update().where(prompts.c.id == prompt_id).values(values))


def last_version_number(connection: Connection, prompt_id: int) -> int:
    query = sa.select(sa.func.max(prompt_versions.c.version_number)).where(
        prompt_versions.c.prompt_id == prompt_id
    )
    return connection.execute(query).scalar() or 0


def insert_version(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(prompt_versions.insert().values(values)))


def find_version(
    connection: Connection, prompt_id: int, *, number: int | None = None, label: str | None = None
) -> VersionRow | None:
    """Find a version by its number or by the label that points at it; neither means the latest."""
    query = sa.select(prompt_versions).where(prompt_versions.c.prompt_id == prompt_id)
    if number is not None:
        query = query.where(prompt_versions.c.version_number == number)
    if label is not None:
        query = query.join(prompt_labels, prompt_labels.c.prompt_version_id == prompt_versions.c.id)
        query = query.where(prompt_labels.c.prompt_id == prompt_id, prompt_labels.c.name == label)
    query = query.order_by(prompt_versions.c.version_number.desc()).limit(1)
    return connection.execute(query).mappings().first()


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
