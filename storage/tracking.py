"""What is said of a logged request after it was logged: scores (E2), metadata, its prompt, its group."""

from collections.abc import Mapping
from typing import Any

from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.log_patches import Patch, group_patch, metadata_patch, prompt_patch
from storage.domain.prompts import PromptLink
from storage.domain.request_logs import Score, to_us
from storage.engine.log_reader import has_log
from storage.engine.rows.log_patches import has_group, insert_group, upsert_patch
from storage.engine.rows.prompts import find_version
from storage.engine.rows.scores import upsert_score
from storage.prompt_links import find_prompt_link
from storage.store import Store


def track_score(store: Store, who: Principal, request_id: int, score: Score) -> None:
    """Score a request under a name; a repeat replaces (E2).

    Raises:
        NotFound: the workspace has no such request.
        Unavailable: nothing was changed.
    """
    _check_request(store, who, request_id)
    now_us = to_us(store.now())
    store.log_notes.run(
        lambda connection: upsert_score(connection, who.workspace_id, request_id, score, now_us)
    )


def track_metadata(store: Store, who: Principal, request_id: int, metadata: Mapping[str, str]) -> None:
    """Add metadata to a request; a key that it has is replaced.

    Raises:
        NotFound: the workspace has no such request.
        Invalid: all that is tracked of the request is over 1 MB.
        Unavailable: nothing was changed.
    """
    _check_request(store, who, request_id)
    if metadata:
        _patch(store, who, request_id, metadata_patch(metadata))


def track_prompt(
    store: Store,
    who: Principal,
    request_id: int,
    *,
    prompt_name: str | None = None,
    prompt_id: int | None = None,
    version_number: int | None = None,
    label: str | None = None,
    input_variables: Mapping[str, Any] | None = None,
) -> PromptLink:
    """Link a request to a prompt, one of its versions, or the one that a label names now; return the link.

    Raises:
        NotFound: the request, prompt, version or label is unknown.
        Invalid: all that is tracked of the request is over 1 MB.
        Unavailable: nothing was changed.
    """
    _check_request(store, who, request_id)
    if label is not None:
        version_number = _labelled(store, who, prompt_name, prompt_id, label)
    link = find_prompt_link(
        store, who.workspace_id, prompt_id=prompt_id, prompt_name=prompt_name, version_number=version_number
    )
    if link is None:
        raise NotFound("No prompt was named")
    _patch(store, who, request_id, prompt_patch(link, input_variables))
    return link


def create_group(store: Store, who: Principal) -> int:
    """Make a group that requests can be put into; return its id."""
    now_us = to_us(store.now())
    return store.log_notes.run(lambda connection: insert_group(connection, who.workspace_id, now_us))


def track_group(store: Store, who: Principal, request_id: int, group_id: int) -> None:
    """Put a request into a group, which its metadata then names (`group_id`); a repeat moves it.

    Raises:
        NotFound: the workspace has no such request or group.
        Unavailable: nothing was changed.
    """
    _check_request(store, who, request_id)
    check_group(store, who, group_id)
    _patch(store, who, request_id, group_patch(group_id))


def check_group(store: Store, who: Principal, group_id: int) -> None:
    """Raise NotFound unless the workspace has a group of that id."""
    with store.logs.read() as connection:
        if not has_group(connection, who.workspace_id, group_id):
            raise NotFound(f"No group has the id {group_id}")


def _check_request(store: Store, who: Principal, request_id: int) -> None:
    if not has_log(store.lake, store.logs, store.data, who.workspace_id, request_id):
        raise NotFound(f"No request has the id {request_id}")


def _labelled(
    store: Store, who: Principal, prompt_name: str | None, prompt_id: int | None, label: str
) -> int:
    with store.catalog.read() as connection:
        found = find_version(connection, who.workspace_id, prompt_id=prompt_id, name=prompt_name, label=label)
    if found is None or found[1] is None:
        raise NotFound(f"No prompt of that id or name has a release label {label}")
    return found[1].version_number


def _patch(store: Store, who: Principal, request_id: int, patch: Patch) -> None:
    now_us = to_us(store.now())
    store.log_notes.run(
        lambda connection: upsert_patch(connection, who.workspace_id, request_id, patch, now_us)
    )
