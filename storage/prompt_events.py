"""Events of prompts, each recorded in the transaction of its change.

The keys of their details are those that existing receivers of such webhooks read.
"""

from collections.abc import Iterable

from storage.domain.keys import Principal
from storage.domain.prompts import PromptVersion, ReleaseLabel
from storage.domain.webhooks import EventType
from storage.engine.catalog import Connection
from storage.events import record_event
from storage.store import Store


def record_publication(
    connection: Connection,
    store: Store,
    who: Principal,
    published: PromptVersion,
    labels: Iterable[str],
    labels_before: Iterable[ReleaseLabel],
) -> None:
    """Record a new version, then each label that was created at it or moved to it."""
    prompt = published.prompt
    record_event(
        connection,
        store,
        workspace_id=who.workspace_id,
        user_id=who.user_id,
        event_type="prompt_template_version_created",
        object_key=_object_key(prompt.id),
        details={
            "prompt_template_id": prompt.id,
            "prompt_template_name": prompt.name,
            "prompt_template_version_number": published.number,
            "prompt_version_id": published.id,
        },
    )
    numbers = {label.name: label.prompt_version_number for label in labels_before}
    for name in dict.fromkeys(labels):
        record_label_put(
            connection,
            store,
            who,
            prompt_id=prompt.id,
            prompt_name=prompt.name,
            label=name,
            version_number=published.number,
            old_version_number=numbers.get(name),
        )


def record_label_put(
    connection: Connection,
    store: Store,
    who: Principal,
    *,
    prompt_id: int,
    prompt_name: str,
    label: str,
    version_number: int,
    old_version_number: int | None,
) -> None:
    """Record that a label was created (no old version) or moved; one that stays makes no event."""
    if old_version_number == version_number:
        return
    moved = old_version_number is not None
    _record_label(
        connection,
        store,
        who,
        "prompt_template_label_moved" if moved else "prompt_template_label_created",
        prompt_id,
        {
            "prompt_template_id": prompt_id,
            "prompt_template_name": prompt_name,
            "prompt_template_label": label,
            "prompt_template_version_number": version_number,
            **({"old_prompt_template_version_number": old_version_number} if moved else {}),
        },
    )


def record_label_deleted(
    connection: Connection, store: Store, who: Principal, *, prompt_name: str, label: ReleaseLabel
) -> None:
    """Record that a label is gone."""
    _record_label(
        connection,
        store,
        who,
        "prompt_template_label_deleted",
        label.prompt_id,
        {
            "prompt_template_id": label.prompt_id,
            "prompt_template_name": prompt_name,
            "prompt_template_label": label.name,
            "prompt_template_version_number": label.prompt_version_number,
        },
    )


def _record_label(
    connection: Connection,
    store: Store,
    who: Principal,
    event_type: EventType,
    prompt_id: int,
    details: dict[str, int | str | None],
) -> None:
    record_event(
        connection,
        store,
        workspace_id=who.workspace_id,
        user_id=who.user_id,
        event_type=event_type,
        object_key=_object_key(prompt_id),
        details=details,
    )


def _object_key(prompt_id: int) -> str:
    return f"prompt:{prompt_id}"
