"""Two versions of a prompt, compared."""

from storage.domain.keys import Principal
from storage.domain.prompt_diffs import PromptDiff, diff_versions
from storage.domain.prompts import Prompt, PromptVersion, find_version_number_in
from storage.engine.catalog import Connection
from storage.prompt_reading import get_prompt, get_version
from storage.store import Store


def diff_prompt(
    store: Store, who: Principal, identifier: str, *, before: str, after: str | None = None
) -> PromptDiff:
    """Compare two versions, each given by number or by label; without `after` the latest is meant.

    Raises:
        NotFound: the prompt, a version or a label is unknown.
    """
    with store.catalog.read() as connection:
        prompt = get_prompt(connection, who, identifier)
        old = _get(connection, store, prompt, before)
        new = (
            get_version(connection, store, prompt)
            if after is None
            else _get(connection, store, prompt, after)
        )
    return diff_versions(old, new)


def _get(connection: Connection, store: Store, prompt: Prompt, wanted: str) -> PromptVersion:
    number = find_version_number_in(wanted)
    if number is not None:
        return get_version(connection, store, prompt, number=number)
    return get_version(connection, store, prompt, label=wanted.removeprefix("label:"))
