"""Fixtures of the verbs: the caller, and the caller of another workspace."""

import pytest

from storage.domain.keys import Principal
from storage.store import Store
from storage.workspaces import find_key
from tests.conftest import KEY


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture
def stranger(store: Store, foreign_key: str) -> Principal:
    facts = find_key(store, foreign_key)
    assert facts is not None
    return facts.principal
