"""Keys over HTTP: who is refused, and how soon a revocation holds."""

import anyio
import pytest

from api.auth import CACHE_S, Authenticator
from storage.domain.errors import Forbidden, Malformed, Unauthorized
from storage.domain.keys import SCOPES, Principal, allows, check_workspace, require
from storage.store import Store
from storage.workspaces import create_key, revoke_key
from tests.conftest import KEY


class Ticks:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def principal_of(authenticator: Authenticator, key: str | None) -> Principal:
    return anyio.run(authenticator.principal, key)


@pytest.mark.parametrize("key", [None, "", "pl_" + "0" * 64, "\udcff" * 40, "x" * 100_000])
def test_a_missing_or_wrong_key_is_refused(store: Store, key: str | None) -> None:
    with pytest.raises(Unauthorized, match="API key"):
        principal_of(Authenticator(store), key)


def test_a_revocation_holds_within_a_second(store: Store) -> None:
    clock = Ticks()
    authenticator = Authenticator(store, monotonic=clock)
    made, key = create_key(store)
    assert principal_of(authenticator, key).key_id == made.id
    revoke_key(store, made.id)
    clock.at = CACHE_S
    with pytest.raises(Unauthorized, match="Invalid API key"):
        principal_of(authenticator, key)


def test_a_key_made_after_it_was_refused_counts_within_a_second(store: Store) -> None:
    clock = Ticks()
    authenticator = Authenticator(store, monotonic=clock)
    assert principal_of(authenticator, KEY).user_name == "admin"
    clock.at = CACHE_S
    assert principal_of(authenticator, KEY).user_name == "admin"


@pytest.mark.parametrize(
    ("held", "needed", "allowed"),
    [
        ("admin", "read", True),
        ("admin", "admin", True),
        ("write", "write:table", True),
        ("write", "ingest", True),
        ("write", "read", True),
        ("write", "admin", False),
        ("write:table", "write:table", True),
        ("write:table", "write:prompt", False),
        ("write:table", "write", False),
        ("ingest", "ingest", True),
        ("ingest", "read", False),
        ("read", "ingest", False),
    ],
)
def test_what_a_scope_allows(held: str, needed: str, allowed: bool) -> None:
    assert allows(frozenset([held]), needed) is allowed


def test_every_scope_allows_itself() -> None:
    assert all(allows(frozenset([scope]), scope) for scope in SCOPES)


def test_a_lacking_scope_is_named() -> None:
    who = Principal(1, 1, "ada", None, 1, frozenset({"read"}))
    with pytest.raises(Forbidden, match="`ingest`"):
        require(who, "ingest")


def test_a_foreign_workspace_id_is_refused() -> None:
    who = Principal(7, 1, "ada", None, 1, frozenset({"read"}))
    assert check_workspace(who, None) == check_workspace(who, 7) == 7
    with pytest.raises(Malformed, match="Invalid workspace_id"):
        check_workspace(who, 8)
