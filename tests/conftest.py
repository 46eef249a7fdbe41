"""Fixtures: a store in a fresh folder, keys of two workspaces, a client of the application."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from starlette.testclient import TestClient

from api.app import Application, create_app
from storage.settings import Settings
from storage.store import Store, open_store, opened
from storage.workspaces import bootstrap, create_key, create_workspace
from tests.described import DescribedClient

KEY = "test-key-of-the-default-workspace-0001"

# the first example of a test may import half the libraries: time says nothing of one
hypothesis.settings.register_profile("promptlake", deadline=None)
hypothesis.settings.load_profile("promptlake")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", api_key=KEY)


@pytest.fixture(scope="session")
def made_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder as the first start leaves it: making the schema anew would be half of many a test."""
    home = tmp_path_factory.mktemp("made") / "home"
    with opened(Settings(home=home, api_key=KEY)) as store:
        bootstrap(store)
    return home


@pytest.fixture
def store(settings: Settings, made_home: Path) -> Iterator[Store]:
    shutil.copytree(made_home, settings.root, dirs_exist_ok=True)
    store = open_store(settings)
    bootstrap(store)
    yield store
    store.close()


@pytest.fixture
def foreign_key(store: Store) -> str:
    """An admin key of another workspace."""
    create_workspace(store, "other")
    return create_key(store, workspace="other")[1]


@pytest.fixture(scope="session")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    """The routes, made once: making them anew would be a third of many a test."""
    return create_app(Settings(home=tmp_path_factory.mktemp("unused") / "home"))


@pytest.fixture
def client(application: Application, settings: Settings, store: Store) -> Iterator[TestClient]:
    """A client of the application, in process, with an admin key of `default`; it checks answers."""
    application.settings = settings
    with DescribedClient(application, headers={"X-API-KEY": KEY}, raise_server_exceptions=False) as client:
        yield client
