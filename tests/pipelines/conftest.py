"""Fixtures of the work: the caller whose operations are run, sheets that are recalculated."""

import pytest

from storage.domain.keys import Principal
from storage.store import Store
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.recalculating import MANY, ROWS, Bench


@pytest.fixture
def who(store: Store) -> Principal:
    facts = find_key(store, KEY)
    assert facts is not None
    return facts.principal


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    return Bench(store, who, ["A", "B"], ROWS)


@pytest.fixture
def large(store: Store, who: Principal) -> Bench:
    """More rows than the overlay takes results of."""
    rows = [[str(n), "x" if n % 1_000 == 0 else str(n)] for n in range(MANY)]
    return Bench(store, who, ["A", "B"], rows)
