"""Prompts as a whole: renamed, tagged, moved, deleted; their versions never change."""

from collections.abc import Mapping
from typing import Any

from storage.audit import record_audit
from storage.domain.errors import Conflict
from storage.domain.keys import Principal
from storage.domain.prompts import Prompt, PromptVersion
from storage.engine.catalog import Connection
from storage.engine.rows.prompt_includes import delete_includes_of
from storage.engine.rows.prompt_labels import select_labels
from storage.engine.rows.prompts import (
    delete_prompt_rows,
    find_prompt,
    last_version_number,
    update_prompt,
)
from storage.folders import check_folder
from storage.prompt_events import record_label_deleted
from storage.prompt_reading import KIND, forgetful, get_prompt, get_version
from storage.snippets import check_not_included
from storage.store import Store


def edit_prompt(store: Store, who: Principal, identifier: str, changes: Mapping[str, Any]) -> PromptVersion:
    """Change a prompt's `name`, `tags` or `folder_id` (None: the root); return its latest version.

    Raises:
        NotFound: the prompt or the folder is unknown.
        Conflict: another prompt has the name, or versions in use include the prompt by its old one.
    """
    with store.catalog.transaction() as connection:
        prompt = get_prompt(connection, who, identifier)
        changed = _changed(prompt, changes)
        if changed:
            _check_edit(connection, who, prompt, changed)
            update_prompt(connection, prompt.id, {**changed, "updated_at": store.now()})
            details = {"name": prompt.name, "changed": changed}
            record_audit(
                connection, store, who, action="update", kind=KIND, entity_id=prompt.id, details=details
            )
            prompt = get_prompt(connection, who, changed.get("name", prompt.name))
        return get_version(connection, forgetful(store), prompt)


def _changed(prompt: Prompt, changes: Mapping[str, Any]) -> dict[str, Any]:
    before = {"name": prompt.name, "tags": list(prompt.tags), "folder_id": prompt.folder_id}
    return {key: value for key, value in changes.items() if value != before[key]}


def _check_edit(connection: Connection, who: Principal, prompt: Prompt, changed: Mapping[str, Any]) -> None:
    check_folder(connection, who, changed.get("folder_id"))
    if "name" in changed:
        if find_prompt(connection, who.workspace_id, name=changed["name"]):
            raise Conflict(f"A prompt is named {changed['name']}")
        check_not_included(connection, prompt, "renamed")


def delete_prompt(store: Store, who: Principal, identifier: str) -> None:
    """Delete a prompt with all its versions, labels and external ids.

    Logs keep the id, the name and the version number that they were made with. The name may be used again,
    by a prompt of another id.

    Raises:
        NotFound: it is unknown.
        Conflict: versions in use of other prompts include it.
    """
    with store.catalog.transaction() as connection:
        prompt = get_prompt(connection, who, identifier)
        check_not_included(connection, prompt, "deleted")
        details = {"name": prompt.name, "last_version_number": last_version_number(connection, prompt.id)}
        for label in select_labels(connection, prompt.id):
            record_label_deleted(connection, store, who, prompt_name=prompt.name, label=label)
        delete_includes_of(connection, prompt.id)
        delete_prompt_rows(connection, prompt.id)
        record_audit(connection, store, who, action="delete", kind=KIND, entity_id=prompt.id, details=details)
