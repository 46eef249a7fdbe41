import pytest

from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.prompts import PromptVersion, Publication
from storage.prompt_links import (
    PromptLinks,
    find_prompt_link,
    get_labelled_link,
    get_version_link,
    list_labelled,
)
from storage.store import Store
from storage.templates import list_release_labels, publish
from storage.workspaces import find_key
from tests.conftest import KEY


def principal(store: Store, key: str = KEY) -> Principal:
    facts = find_key(store, key)
    assert facts is not None
    return facts.principal


def published(store: Store, who: Principal, name: str = "p", *labels: str) -> PromptVersion:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    return publish(store, who, Publication(name, blueprint, release_labels=labels))


def test_a_log_links_by_id_or_name_and_an_unknown_prompt_or_version_is_not_found(store: Store) -> None:
    who = principal(store)
    first, second = published(store, who), published(store, who)
    assert find_prompt_link(store, who.workspace_id) is None
    by_name = find_prompt_link(store, who.workspace_id, prompt_name="p", version_number=2)
    assert by_name is not None
    assert (by_name.prompt_id, by_name.prompt_version_id) == (first.prompt.id, second.id)
    alone = find_prompt_link(store, who.workspace_id, prompt_id=first.prompt.id)
    assert alone is not None
    assert (alone.prompt_name, alone.prompt_version_id, alone.version_number) == ("p", None, None)
    for reference in (
        {"prompt_name": "q"},
        {"prompt_id": 99},
        {"prompt_id": first.prompt.id, "prompt_name": "q"},
        {"prompt_name": "p", "version_number": 3},
    ):
        with pytest.raises(NotFound):
            find_prompt_link(store, who.workspace_id, **reference)  # type: ignore[arg-type]


def test_another_workspace_sees_no_prompt_version_or_label(store: Store, foreign_key: str) -> None:
    who, stranger = principal(store), principal(store, foreign_key)
    version = published(store, who, "p", "prod")
    label = list_release_labels(store, who, "p")[0]
    assert get_version_link(store, who.workspace_id, version.id).version_number == 1
    assert get_labelled_link(store, who.workspace_id, label.id).prompt_version_id == version.id
    for ask in (
        lambda: find_prompt_link(store, stranger.workspace_id, prompt_id=version.prompt.id),
        lambda: get_version_link(store, stranger.workspace_id, version.id),
        lambda: get_labelled_link(store, stranger.workspace_id, label.id),
    ):
        with pytest.raises(NotFound):
            ask()
    assert list_labelled(store, stranger.workspace_id, "prod") == []


def test_a_label_names_the_version_that_it_points_at_now(store: Store) -> None:
    who = principal(store)
    published(store, who, "p", "prod")
    before = list_labelled(store, who.workspace_id, "prod")
    second = published(store, who, "p", "prod")
    after = list_labelled(store, who.workspace_id, "prod")
    assert [label.id for label in before] == [label.id for label in after]
    assert get_labelled_link(store, who.workspace_id, after[0].id).prompt_version_id == second.id


def test_links_are_remembered_for_a_second_and_unknown_ones_never(store: Store) -> None:
    who = principal(store)
    clock = [0.0]
    links = PromptLinks(store, monotonic=lambda: clock[0])
    with pytest.raises(NotFound):
        links.find(who.workspace_id, prompt_name="p")
    published(store, who)
    assert links.find(who.workspace_id, prompt_name="p") is not None
    reference = (who.workspace_id, None, "p", None)
    assert links.remembered(reference) is not None
    clock[0] = 1.0
    assert links.remembered(reference) is None
