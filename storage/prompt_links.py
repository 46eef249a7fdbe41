"""What logs and imports refer to: a prompt, one of its versions, or the version that a label names now."""

import time
from collections.abc import Callable

from storage.domain.errors import NotFound
from storage.domain.prompts import PromptLink, ReleaseLabel
from storage.engine.rows.prompt_labels import select_labels_named
from storage.engine.rows.prompts import find_link, find_link_of_version
from storage.store import Store

_Reference = tuple[int, int | None, str | None, int | None]


def find_prompt_link(
    store: Store,
    workspace_id: int,
    *,
    prompt_id: int | None = None,
    prompt_name: str | None = None,
    version_number: int | None = None,
) -> PromptLink | None:
    """Return what a log refers to; None when it names no prompt. Id and name must be of one prompt.

    Raises:
        NotFound: the prompt or the version is unknown.
    """
    if prompt_id is None and prompt_name is None:
        return None
    with store.catalog.read() as connection:
        link = find_link(
            connection, workspace_id, prompt_id=prompt_id, name=prompt_name, number=version_number
        )
    if link is None:
        raise NotFound(_unknown(prompt_id, prompt_name, version_number))
    return link


def get_version_link(store: Store, workspace_id: int, prompt_version_id: int) -> PromptLink:
    """Return the version of that id.

    Raises:
        NotFound: it is unknown.
    """
    with store.catalog.read() as connection:
        link = find_link_of_version(connection, workspace_id, version_id=prompt_version_id)
    if link is None:
        raise NotFound(f"No prompt version has the id {prompt_version_id}")
    return link


def get_labelled_link(store: Store, workspace_id: int, prompt_label_id: int) -> PromptLink:
    """Return the version that the release label of that id names now.

    Raises:
        NotFound: the label is unknown.
    """
    with store.catalog.read() as connection:
        link = find_link_of_version(connection, workspace_id, label_id=prompt_label_id)
    if link is None:
        raise NotFound(f"No release label has the id {prompt_label_id}")
    return link


def list_labelled(store: Store, workspace_id: int, label: str) -> list[ReleaseLabel]:
    """Return where the labels of that name point now, one entry a prompt that has it."""
    with store.catalog.read() as connection:
        return select_labels_named(connection, workspace_id, label)


class PromptLinks:
    """Links that were found lately: each counts for `seconds`, so that a hot path asks the catalog rarely."""

    def __init__(
        self, store: Store, *, seconds: float = 1.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._monotonic = monotonic
        self._found: dict[_Reference, tuple[float, PromptLink]] = {}

    def find(
        self,
        workspace_id: int,
        *,
        prompt_id: int | None = None,
        prompt_name: str | None = None,
        version_number: int | None = None,
    ) -> PromptLink | None:
        """As `find_prompt_link`; what is unknown is asked anew each time.

        Raises:
            NotFound: the prompt or the version is unknown.
        """
        reference = (workspace_id, prompt_id, prompt_name, version_number)
        found = self.remembered(reference)
        if found is not None:
            return found
        asked_at = self._monotonic()
        link = find_prompt_link(
            self._store,
            workspace_id,
            prompt_id=prompt_id,
            prompt_name=prompt_name,
            version_number=version_number,
        )
        if link is not None:
            if len(self._found) >= _MOST_LINKS:
                self._found.clear()
            self._found[reference] = (asked_at, link)
        return link

    def remembered(self, reference: _Reference) -> PromptLink | None:
        """Return (workspace id, prompt id, name, version number) if it was found lately; never waits."""
        seen = self._found.get(reference)
        return seen[1] if seen is not None and self._monotonic() - seen[0] < self._seconds else None


_MOST_LINKS = 10_000


def _unknown(prompt_id: int | None, prompt_name: str | None, version_number: int | None) -> str:
    named = " and the ".join(
        part
        for part in (
            f"id {prompt_id}" if prompt_id is not None else "",
            f"name {prompt_name}" if prompt_name is not None else "",
        )
        if part
    )
    version = f" and a version {version_number}" if version_number is not None else ""
    return f"No prompt has the {named}{version}"
