"""Fixtures: a store in a fresh folder, keys of two workspaces, a client of the application."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from storage.settings import Settings
from storage.store import Store, open_store
from storage.workspaces import bootstrap, create_key, create_workspace

KEY = "test-key-of-the-default-workspace-0001"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", api_key=KEY)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = open_store(settings)
    bootstrap(store)
    yield store
    store.close()


@pytest.fixture
def foreign_key(store: Store) -> str:
    """An admin key of another workspace."""
    create_workspace(store, "other")
    return create_key(store, workspace="other")[1]


@pytest.fixture
def client(settings: Settings, store: Store) -> Iterator[TestClient]:
    """A client of the whole application, in process, with an admin key of `default`."""
    with TestClient(
        create_app(settings), headers={"X-API-KEY": KEY}, raise_server_exceptions=False
    ) as client:
        yield client
