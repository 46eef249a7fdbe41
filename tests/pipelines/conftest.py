"""Fixtures of the work: the caller whose operations are run."""

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
