"""Prompts and versions as they are found within an open read: by name or id, by number or label."""

from dataclasses import replace

from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.prompts import Prompt, PromptVersion, find_prompt_id_in
from storage.engine.catalog import Connection
from storage.engine.rows.external_ids import select_external_ids
from storage.engine.rows.prompt_labels import select_label_names
from storage.engine.rows.prompts import (
    VersionRow,
    find_prompt,
    find_version,
    get_body,
    remembered_bodies,
    remembered_expansions,
)
from storage.store import Store

KIND = "prompt"


def forgetful(store: Store) -> Store:
    """The same store without memory, for reads within a transaction.

    What a transaction made may never be committed, and its ids would then be given to something else.
    """
    return replace(store, prompt_bodies=remembered_bodies(), expansions=remembered_expansions())


def get_prompt(connection: Connection, who: Principal, identifier: str) -> Prompt:
    """Return the prompt that has the name, else the one that has the id.

    Raises:
        NotFound: neither is known in the caller's workspace.
    """
    prompt = find_prompt(connection, who.workspace_id, name=identifier)
    prompt_id = find_prompt_id_in(identifier)
    if prompt is None and prompt_id is not None:
        prompt = find_prompt(connection, who.workspace_id, prompt_id=prompt_id)
    if prompt is None:
        raise NotFound(f"No prompt has the name or id {identifier[:100]}")
    return prompt


def get_prompt_by_id(connection: Connection, who: Principal, prompt_id: int) -> Prompt:
    """Return the prompt of that id.

    Raises:
        NotFound: it is unknown in the caller's workspace.
    """
    prompt = find_prompt(connection, who.workspace_id, prompt_id=prompt_id)
    if prompt is None:
        raise NotFound(f"No prompt has the id {prompt_id}")
    return prompt


def get_version(
    connection: Connection,
    store: Store,
    prompt: Prompt,
    *,
    number: int | None = None,
    label: str | None = None,
) -> PromptVersion:
    """Return a version of a prompt by number or label, else the latest.

    Raises:
        NotFound: the prompt has no such version or label.
    """
    found = find_version(connection, prompt.workspace_id, prompt_id=prompt.id, number=number, label=label)
    return _whole(connection, store, prompt, None if found is None else found[1], number, label)


def get_version_of(
    connection: Connection,
    store: Store,
    who: Principal,
    identifier: str,
    *,
    number: int | None = None,
    label: str | None = None,
) -> PromptVersion:
    """Return a version of the prompt that has the name, else the id; raises as the two above."""
    found = find_version(connection, who.workspace_id, name=identifier, number=number, label=label)
    if found is None:
        return get_version(
            connection, store, get_prompt(connection, who, identifier), number=number, label=label
        )
    return _whole(connection, store, *found, number, label)


def _whole(
    connection: Connection,
    store: Store,
    prompt: Prompt,
    row: VersionRow | None,
    number: int | None,
    label: str | None,
) -> PromptVersion:
    if row is None:
        wanted = f"version {number}" if number is not None else f"release label {label}"
        raise NotFound(f"The prompt {prompt.name} has no {wanted}")
    body = get_body(connection, store.prompt_bodies, row.id)
    return PromptVersion(
        prompt=prompt,
        id=row.id,
        number=row.version_number,
        blueprint=body.blueprint,
        metadata=body.metadata,
        commit_message=row.commit_message,
        created_at=row.created_at,
        release_labels=select_label_names(connection, row.id),
        external_ids=select_external_ids(connection, KIND, prompt.id),
    )
