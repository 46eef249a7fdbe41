"""Upkeep: views are right again after the home folder was moved."""

import duckdb

from pipelines import maintenance
from pipelines.flush import run_flush
from storage.settings import Settings
from storage.store import Store, opened
from tests.logs import add_logs


def test_the_views_of_a_moved_home_are_published_anew(store: Store, settings: Settings) -> None:
    add_logs(store, 3)
    run_flush(store)
    store.close()
    moved = settings.root.rename(settings.root.with_name("moved"))
    with opened(Settings(home=moved)) as there:
        view = there.data.path("views/default.duckdb")
        before = view.stat().st_mtime_ns
        assert maintenance.sweep_store(there)["published_views"] == 1
        assert view.stat().st_mtime_ns > before
        with duckdb.connect(str(view), read_only=True) as lake:
            assert lake.execute("SELECT count(*) FROM request_logs").fetchall() == [(3,)]
