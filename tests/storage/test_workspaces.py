from datetime import UTC, datetime, timedelta

import pytest

from storage.domain.errors import Conflict, NotFound
from storage.settings import Settings
from storage.store import Store, opened
from storage.workspaces import (
    bootstrap,
    create_key,
    create_workspace,
    find_key,
    list_keys,
    revoke_key,
    rotate_key,
)


def test_the_first_start_makes_a_key_once_and_shows_it(settings: Settings) -> None:
    with opened(Settings(home=settings.home)) as store:
        key = bootstrap(store)
        assert key is not None
        assert key.startswith("pl_")
        assert bootstrap(store) is None
        facts = find_key(store, key)
        assert facts is not None
        assert facts.principal.scopes == {"admin"}


def test_a_key_is_not_stored_as_text(store: Store, settings: Settings) -> None:
    _, key = create_key(store)
    store.close()
    for file in settings.root.rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes(), file


def test_rotation_keeps_the_user_and_ends_the_old_key(store: Store) -> None:
    old, old_text = create_key(store, user="ada", email="ada@example.org", scopes=["read"])
    new, new_text = rotate_key(store, old.id)
    before, after = find_key(store, old_text), find_key(store, new_text)
    assert before is not None
    assert after is not None
    assert not before.counts_at(store.now())
    assert after.counts_at(store.now())
    assert (new.user, new.email, new.scopes) == ("ada", "ada@example.org", ("read",))
    assert before.principal.user_id == after.principal.user_id
    with pytest.raises(Conflict):
        rotate_key(store, old.id)


def test_an_expired_key_does_not_count(store: Store) -> None:
    _, key = create_key(store, expires_in_days=1)
    facts = find_key(store, key)
    assert facts is not None
    assert facts.counts_at(datetime.now(UTC))
    assert not facts.counts_at(datetime.now(UTC) + timedelta(days=1, seconds=1))


def test_unknown_scopes_workspaces_and_keys_are_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="Unknown scope"):
        create_key(store, scopes=["everything"])
    with pytest.raises(NotFound):
        create_key(store, workspace="nowhere")
    with pytest.raises(NotFound):
        revoke_key(store, 12345)
    with pytest.raises(Conflict):
        create_workspace(store, "default")
    assert len(list_keys(store)) == 1
