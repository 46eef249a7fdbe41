"""Prompt templates: published as numbered versions, found by name or id, version or label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.audit import record_audit
from storage.domain.blueprints import check_size, checked_blueprint, render_blueprint, variable_warning
from storage.domain.keys import Principal
from storage.domain.llm_kwargs import find_llm_kwargs
from storage.domain.prompts import PromptVersion, Publication, ReleaseLabel
from storage.engine.catalog import Connection
from storage.engine.rows.prompt_labels import put_label, select_labels
from storage.engine.rows.prompts import (
    find_prompt,
    insert_prompt,
    insert_version,
    last_version_number,
    select_prompt_page,
    update_prompt,
)
from storage.external_ids import attach_external_ids
from storage.folders import check_folder
from storage.prompt_events import record_publication
from storage.prompt_reading import KIND, forgetful, get_prompt, get_prompt_by_id, get_version, get_version_of
from storage.sandbox import jinja2_of
from storage.snippets import check_acyclic, expand_publication, expanded, keep_includes, library_of
from storage.store import Store


@dataclass(frozen=True, slots=True)
class Rendered:
    """A version whose blueprint is filled in, with the arguments of the model's client."""

    version: PromptVersion
    blueprint: dict[str, Any]
    llm_kwargs: dict[str, Any] | None
    warning: str | None


def publish(store: Store, who: Principal, publication: Publication) -> PromptVersion:
    """Publish a new prompt, or the next version of the one that has the name (E4).

    Raises:
        Invalid: the template or the metadata is over 1 MB as JSON.
        InvalidConfig: a text of the template does not parse, or a snippet cannot be included.
        DependencyCycle: it would include itself as a snippet.
        NotFound: the folder is unknown.
        Conflict: another prompt has one of the external ids.
    """
    check_size(publication.metadata, "prompt_version.metadata")
    blueprint = checked_blueprint(
        publication.blueprint,
        jinja2_of(store, who),
        lambda stored: expand_publication(store, who, publication, stored),
    )
    now = store.now()
    with store.catalog.transaction() as connection:
        check_folder(connection, who, publication.folder_id)
        prompt_id = _ensure_prompt(connection, store, who, publication)
        number = last_version_number(connection, prompt_id) + 1
        version_id = insert_version(
            connection,
            {
                "prompt_id": prompt_id,
                "version_number": number,
                "prompt_template": blueprint,
                "metadata": publication.metadata,
                "commit_message": publication.commit_message,
                "user_id": who.user_id,
                "created_at": now,
            },
        )
        labels_before = select_labels(connection, prompt_id)
        for label in dict.fromkeys(publication.release_labels):
            put_label(connection, prompt_id, label, version_id, now)
        attach_external_ids(connection, who, KIND, prompt_id, publication.external_ids)
        record_audit(
            connection,
            store,
            who,
            action="create" if number == 1 else "update",
            kind=KIND,
            entity_id=prompt_id,
            details={
                "name": publication.prompt_name,
                "version_number": number,
                "release_labels": list(publication.release_labels),
            },
        )
        prompt = get_prompt(connection, who, publication.prompt_name)
        published = get_version(connection, forgetful(store), prompt, number=number)
        # once more: a snippet may have been published since the template was looked at
        keep_includes(connection, published, check_acyclic(connection, store, who, published))
        record_publication(connection, store, who, published, publication.release_labels, labels_before)
    return published


def _ensure_prompt(connection: Connection, store: Store, who: Principal, publication: Publication) -> int:
    now = store.now()
    given: dict[str, Any] = {"updated_at": now}
    if publication.tags is not None:
        given["tags"] = list(publication.tags)
    if publication.folder_id is not None:
        given["folder_id"] = publication.folder_id
    prompt = find_prompt(connection, who.workspace_id, name=publication.prompt_name)
    if prompt is not None:
        update_prompt(connection, prompt.id, given)
        return prompt.id
    fresh = {"workspace_id": who.workspace_id, "name": publication.prompt_name, "tags": [], "created_at": now}
    return insert_prompt(connection, fresh | given)


def get_template(
    store: Store,
    who: Principal,
    identifier: str,
    *,
    number: int | None = None,
    label: str | None = None,
    resolve_snippets: bool = False,
) -> PromptVersion:
    """Return a version by number or label, else the latest; an exact name wins over an id.

    It is as published; with `resolve_snippets` its snippets stand in place, as they are now.

    Raises:
        NotFound: the prompt, the version or the label is unknown.
        InvalidConfig: a snippet is to be resolved and cannot be.
    """
    with store.catalog.read() as connection:
        version = get_version_of(connection, store, who, identifier, number=number, label=label)
        if not resolve_snippets:
            return version
        library = library_of(connection, store, who, version.blueprint)
    return expanded(store, who, version, library)


def resolve_template(
    store: Store,
    who: Principal,
    *,
    name: str | None,
    prompt_id: int | None,
    number: int | None = None,
    label: str | None = None,
) -> PromptVersion:
    """Return a version of the prompt of a name, else of an id, with its snippets in place as they are now.

    Raises:
        As `get_template`.
    """
    with store.catalog.read() as connection:
        if name is not None:
            version = get_version_of(connection, store, who, name, number=number, label=label)
        else:
            prompt = get_prompt_by_id(connection, who, prompt_id or 0)
            version = get_version(connection, store, prompt, number=number, label=label)
        library = library_of(connection, store, who, version.blueprint)
    return expanded(store, who, version, library)


def render(
    store: Store,
    who: Principal,
    identifier: str,
    *,
    number: int | None = None,
    label: str | None = None,
    values: Mapping[str, Any] | None = None,
    provider: str | None = None,
    model: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Rendered:
    """Return a version with its snippets in place and its variables filled in.

    Without values its texts stay as written.

    Raises:
        NotFound: the prompt, the version or the label is unknown.
        InvalidConfig: a snippet cannot be included, or a jinja2 text does not render with these values, or
            meets a limit.
        Unavailable: no sandbox worker became free.
    """
    version = get_template(store, who, identifier, number=number, label=label, resolve_snippets=True)
    blueprint = version.blueprint
    if values is not None:
        blueprint = render_blueprint(blueprint, values, jinja2_of(store, who))
    return Rendered(
        version=version,
        blueprint=blueprint,
        llm_kwargs=find_llm_kwargs(
            blueprint, version.metadata, provider=provider, model=model, overrides=overrides
        ),
        warning=variable_warning(version.blueprint, values),
    )


def check_prompt(store: Store, who: Principal, identifier: str) -> None:
    """Check that a prompt exists in the caller's workspace.

    Raises:
        NotFound: it does not.
    """
    with store.catalog.read() as connection:
        get_prompt(connection, who, identifier)


def check_prompt_id(store: Store, who: Principal, prompt_id: int) -> None:
    """Check that the prompt of an id exists in the caller's workspace.

    Raises:
        NotFound: it does not.
    """
    with store.catalog.read() as connection:
        get_prompt_by_id(connection, who, prompt_id)


def list_release_labels(store: Store, who: Principal, identifier: str) -> list[ReleaseLabel]:
    """Return the release labels of a prompt in the order of their names (E5).

    Raises:
        NotFound: the prompt is unknown.
    """
    with store.catalog.read() as connection:
        return select_labels(connection, get_prompt(connection, who, identifier).id)


def list_templates(
    store: Store,
    who: Principal,
    *,
    page: int,
    per_page: int,
    name: str | None = None,
    label: str | None = None,
    tags: Sequence[str] = (),
) -> tuple[list[PromptVersion], int]:
    """Return one page of prompts, newest first, each at the label's version or its latest; and the total."""
    with store.catalog.read() as connection:
        prompts, total = select_prompt_page(
            connection,
            who.workspace_id,
            name=name,
            label=label,
            tags=tags,
            offset=(page - 1) * per_page,
            limit=per_page,
        )
        return [get_version(connection, store, prompt, label=label) for prompt in prompts], total
