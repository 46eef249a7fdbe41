"""Snippets as the catalog has them: found, put into the templates that include them, kept track of."""

from collections.abc import Hashable
from dataclasses import replace

from storage.domain.blueprints import Blueprint, input_variables
from storage.domain.errors import Conflict
from storage.domain.keys import Principal
from storage.domain.prompts import Prompt, PromptVersion, Publication
from storage.domain.snippets import (
    Library,
    Reference,
    Snippet,
    expand_blueprint,
    load_library,
    references_of,
    snippet_text,
)
from storage.engine.catalog import Connection
from storage.engine.rows.prompt_includes import insert_includes, select_includers
from storage.engine.rows.prompts import find_version, get_body
from storage.prompt_reading import forgetful
from storage.sandbox import jinja2_of
from storage.store import Store

# Ids of versions begin at 1: the one that is being published has none yet.
_UNPUBLISHED = 0


def library_of(connection: Connection, store: Store, who: Principal, blueprint: Blueprint) -> Library:
    """Return every snippet that a blueprint reaches, as of this read.

    Raises:
        InvalidConfig: one is unknown or cannot be included, or there are too many.
    """
    return load_library(blueprint, lambda reference: _find(connection, store, who, reference))


def expanded(store: Store, who: Principal, version: PromptVersion, library: Library) -> PromptVersion:
    """Return the version with its snippets in place, and their variables among its own.

    Raises:
        InvalidConfig: what a text comes to is too deep, too large, in two languages, or does not parse.
        DependencyCycle: a snippet includes itself.
        Unavailable: no sandbox worker became free.
    """
    if not library:
        return version
    # versions never change: the same ones always come to the same
    key: Hashable = (version.id, *((str(name), snippet.version_id) for name, snippet in library.items()))

    def expand() -> Blueprint:
        whole = expand_blueprint(version.blueprint, library, name=version.prompt.name, version_id=version.id)
        return {**whole, "input_variables": list(input_variables(whole, jinja2_of(store, who)))}

    return replace(version, blueprint=store.expansions.get(key, expand))


def expand_inline(store: Store, who: Principal, blueprint: Blueprint, name: str = "template") -> Blueprint:
    """Return a blueprint that is published nowhere with its snippets in place; raises as `expanded`."""
    with store.catalog.read() as connection:
        library = library_of(connection, store, who, blueprint)
    return expand_blueprint(blueprint, library, name=name, version_id=_UNPUBLISHED)


def expand_publication(
    store: Store, who: Principal, publication: Publication, blueprint: Blueprint
) -> Blueprint:
    """Return what is about to be published with its snippets in place, itself among what can be found.

    Raises:
        InvalidConfig: a snippet is unknown or cannot be included, or the whole is too deep or too large.
        DependencyCycle: it would include itself, directly or through others.
    """

    def find(reference: Reference) -> Snippet | None:
        name = publication.prompt_name
        labels = (None, *publication.release_labels)
        if reference.name == name and reference.number is None and reference.label in labels:
            # its text is never read: who reaches it is refused
            return Snippet(_UNPUBLISHED, 0, name, 0, "", "")
        return _find(connection, store, who, reference)

    with store.catalog.read() as connection:
        library = load_library(blueprint, find)
    return expand_blueprint(blueprint, library, name=publication.prompt_name, version_id=_UNPUBLISHED)


def check_acyclic(connection: Connection, store: Store, who: Principal, version: PromptVersion) -> Library:
    """Check within the transaction that points something at a version that no snippet includes itself by it.

    Every circle would lead through that version: the catalog never holds one. Returns what it reaches.

    Raises:
        DependencyCycle: one would; names the path.
        InvalidConfig: as `library_of` and `expanded`.
    """
    library = library_of(connection, forgetful(store), who, version.blueprint)
    expand_blueprint(version.blueprint, library, name=version.prompt.name, version_id=version.id)
    return library


def keep_includes(connection: Connection, version: PromptVersion, library: Library) -> None:
    """Keep which prompts a new version names itself."""
    named = references_of(version.blueprint)
    insert_includes(
        connection, version.id, [(library[reference].prompt_id, reference.label) for reference in named]
    )


def check_not_included(
    connection: Connection, prompt: Prompt, change: str, *, label: str | None = None
) -> None:
    """Check that no version in use of another prompt includes a prompt (where a label is given: by it).

    Raises:
        Conflict: some do; names them.
    """
    if includers := select_includers(connection, prompt.id, label=label):
        what = "It" if label is None else f"Its label {label}"
        raise Conflict(
            f"The prompt {prompt.name} cannot be {change}. {what} is included as a snippet by versions in "
            f"use (latest or labelled) of: {', '.join(includers)}"
        )


def _find(connection: Connection, store: Store, who: Principal, reference: Reference) -> Snippet | None:
    found = find_version(
        connection, who.workspace_id, name=reference.name, number=reference.number, label=reference.label
    )
    prompt, row = found or (None, None)
    if prompt is None or row is None:
        return None
    blueprint = get_body(connection, store.prompt_bodies, row.id).blueprint
    return Snippet(
        version_id=row.id,
        prompt_id=prompt.id,
        name=str(reference),
        number=row.version_number,
        text=snippet_text(prompt.name, blueprint),
        template_format=blueprint["template_format"],
    )
