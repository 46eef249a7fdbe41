"""Rows of what includes what: a version, the snippets that it names, and the label that it pins."""

from collections.abc import Iterable

import sqlalchemy as sa

from storage.engine.catalog import Connection
from storage.engine.schema import prompt_includes, prompt_labels, prompt_versions, prompts


def insert_includes(
    connection: Connection, version_id: int, included: Iterable[tuple[int, str | None]]
) -> None:
    """Keep that a version includes prompts, each by its id and the label that is pinned."""
    rows = [
        {"version_id": version_id, "snippet_id": snippet_id, "label": label or ""}
        for snippet_id, label in dict.fromkeys(included)
    ]
    if rows:
        connection.execute(prompt_includes.insert(), rows)


def select_includers(
    connection: Connection, snippet_id: int, *, label: str | None = None, limit: int = 5
) -> list[str]:
    """Names of other prompts that include a prompt (where a label is given: by it) in a version in use.

    In use are the latest version of a prompt and those that a label names.
    """
    later = prompt_versions.alias()
    is_latest = ~sa.exists().where(
        later.c.prompt_id == prompt_versions.c.prompt_id,
        later.c.version_number > prompt_versions.c.version_number,
    )
    is_labelled = sa.exists().where(prompt_labels.c.prompt_version_id == prompt_versions.c.id)
    query = (
        sa.select(prompts.c.name)
        .join(prompt_versions, prompt_versions.c.prompt_id == prompts.c.id)
        .join(prompt_includes, prompt_includes.c.version_id == prompt_versions.c.id)
        .where(prompt_includes.c.snippet_id == snippet_id, prompts.c.id != snippet_id)
        .where(is_latest | is_labelled)
    )
    if label is not None:
        query = query.where(prompt_includes.c.label == label)
    return list(connection.execute(query.distinct().order_by(prompts.c.name).limit(limit)).scalars())


def delete_includes_of(connection: Connection, prompt_id: int) -> None:
    """Forget what the versions of a prompt include, and which versions included it."""
    own = sa.select(prompt_versions.c.id).where(prompt_versions.c.prompt_id == prompt_id)
    connection.execute(
        prompt_includes.delete().where(
            prompt_includes.c.version_id.in_(own) | (prompt_includes.c.snippet_id == prompt_id)
        )
    )
