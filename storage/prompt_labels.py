"""Release labels: created at a version of a prompt, moved to another one, deleted."""

from storage.audit import record_audit
from storage.domain.errors import Conflict, NotFound
from storage.domain.keys import Principal
from storage.domain.prompts import Prompt, ReleaseLabel
from storage.engine.catalog import Connection
from storage.engine.rows.prompt_labels import (
    delete_label_row,
    find_label,
    put_label,
    select_labels,
)
from storage.prompt_events import record_label_deleted, record_label_put
from storage.prompt_reading import forgetful, get_prompt_by_id, get_version
from storage.snippets import check_acyclic, check_not_included
from storage.store import Store

KIND = "prompt_label"


def create_label(
    store: Store, who: Principal, prompt_id: int, *, name: str, version_number: int
) -> ReleaseLabel:
    """Create a label at a version of a prompt.

    Raises:
        NotFound: the prompt or the version is unknown.
        Conflict: the prompt has a label of that name.
    """
    with store.catalog.transaction() as connection:
        prompt = get_prompt_by_id(connection, who, prompt_id)
        for label in select_labels(connection, prompt_id):
            if label.name == name:
                raise Conflict(
                    f"The prompt has the label {name} at version {label.prompt_version_number}, "
                    f"id {label.id}; move that one"
                )
        _point(connection, store, who, prompt, name, version_number)
        (created,) = [label for label in select_labels(connection, prompt_id) if label.name == name]
        _record(connection, store, who, "create", created)
        record_label_put(
            connection,
            store,
            who,
            prompt_id=prompt_id,
            prompt_name=prompt.name,
            label=name,
            version_number=version_number,
            old_version_number=None,
        )
    return created


def move_label(
    store: Store, who: Principal, label_id: int, *, version_number: int | None = None
) -> ReleaseLabel:
    """Point a label at another version of its prompt; the same one (or None) changes nothing.

    Raises:
        NotFound: the label or the version is unknown.
        DependencyCycle: a snippet would include itself by the label.
    """
    with store.catalog.transaction() as connection:
        label = require_label(connection, who, label_id)
        if version_number in {None, label.prompt_version_number}:
            return label
        prompt = get_prompt_by_id(connection, who, label.prompt_id)
        _point(connection, store, who, prompt, label.name, version_number)
        moved = require_label(connection, who, label_id)
        _record(connection, store, who, "update", moved, old_version_number=label.prompt_version_number)
        record_label_put(
            connection,
            store,
            who,
            prompt_id=prompt.id,
            prompt_name=prompt.name,
            label=label.name,
            version_number=moved.prompt_version_number,
            old_version_number=label.prompt_version_number,
        )
    return moved


def delete_label(store: Store, who: Principal, label_id: int) -> None:
    """Delete a label; the version that it named stays.

    Raises:
        NotFound: it is unknown.
        Conflict: versions in use include the prompt by this label.
    """
    with store.catalog.transaction() as connection:
        label = require_label(connection, who, label_id)
        prompt = get_prompt_by_id(connection, who, label.prompt_id)
        check_not_included(connection, prompt, f"without its label {label.name}", label=label.name)
        delete_label_row(connection, label_id)
        _record(connection, store, who, "delete", label)
        record_label_deleted(connection, store, who, prompt_name=prompt.name, label=label)


def check_label(store: Store, who: Principal, label_id: int) -> None:
    """Check that a label exists in the caller's workspace.

    Raises:
        NotFound: it does not.
    """
    with store.catalog.read() as connection:
        require_label(connection, who, label_id)


def require_label(connection: Connection, who: Principal, label_id: int) -> ReleaseLabel:
    """Return a label within an open read.

    Raises:
        NotFound: it is unknown in the caller's workspace.
    """
    label = find_label(connection, who.workspace_id, label_id)
    if label is None:
        raise NotFound(f"No release label has the id {label_id}")
    return label


def _point(
    connection: Connection, store: Store, who: Principal, prompt: Prompt, name: str, number: int | None
) -> None:
    version = get_version(connection, forgetful(store), prompt, number=number)
    put_label(connection, prompt.id, name, version.id, store.now())
    check_acyclic(connection, store, who, version)


def _record(
    connection: Connection, store: Store, who: Principal, action: str, label: ReleaseLabel, **more: object
) -> None:
    record_audit(
        connection,
        store,
        who,
        action=action,
        kind=KIND,
        entity_id=label.id,
        details={
            "name": label.name,
            "prompt_id": label.prompt_id,
            "version_number": label.prompt_version_number,
            **more,
        },
    )
