"""What the README shows of DuckDB works as it stands there, on a published file and with `promptlake sql`."""

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from storage.domain.keys import Principal
from storage.domain.log_columns import VIEWS
from storage.domain.request_logs import Score, to_us
from storage.log_deletion import delete_log
from storage.log_flush import flush_logs, publish_views
from storage.sql import open_ad_hoc, split_statements
from storage.store import Store
from storage.tracking import track_metadata
from tests.logs import add_logs

README = (Path(__file__).parents[2] / "README.md").read_text()
RECIPES = README.split("<!-- recipes -->\n```sql\n")[1].split("```")[0]
START = to_us(datetime(2026, 1, 5, 10, tzinfo=UTC))


def times(latency_ms: int, days: int = 0) -> dict[str, int]:
    start = START + days * 86_400_000_000
    return {"request_start_time": start, "request_end_time": start + latency_ms * 1000}


@pytest.fixture
def filled(store: Store, who: Principal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Logs of two models and two days; one is patched, one deleted, one not flushed."""
    greet = {"prompt_id": 7, "prompt_name": "greet"}
    good, low = Score("default", 90), Score("tone", 30)
    add_logs(store, 1, price=1.0, **times(100), metadata={"customer": "c1"}, tags=["a", "b"], score=good,
             prompt_version_number=1, **greet)  # fmt: skip
    add_logs(store, 1, price=2.0, **times(300), metadata={"customer": "c2"}, tags=["a"], score=low,
             prompt_version_number=2, **greet)  # fmt: skip
    add_logs(
        store, 1, price=4.0, model="m2", **times(50, days=1), status="ERROR", error_type="PROVIDER_TIMEOUT"
    )
    add_logs(store, 1, price=99.0, score=low)
    flush_logs(store)
    track_metadata(store, who, 3, {"customer": "c2"})
    delete_log(store, who, 4)
    publish_views(store, at_once=True)
    pl.DataFrame({"name": ["c1", "c2"], "plan": ["free", "paid"]}).write_parquet(
        tmp_path / "customers.parquet"
    )
    monkeypatch.chdir(tmp_path)
    return store


EXPECTED: dict[str, Any] = {
    "cost by model and day": [
        ("gpt-4o", date(2026, 1, 5), 2, 3.0),
        ("m2", date(2026, 1, 6), 1, 4.0),
    ],
    "slowest prompts": [("greet", 290.0, 2)],
    "error rate by provider and kind of error": [("openai", "PROVIDER_TIMEOUT", pytest.approx(1 / 3))],
    "score by version of a prompt": [("greet", 1, 90.0, 1, 1), ("greet", 2, None, 0, 1)],
    "requests with a low score of some name": [(2, "gpt-4o", 30)],
    "cost by a key of the metadata, and which keys there are": [("c2", 6.0), ("c1", 1.0)],
    "requests by tag": [("a", 2), ("b", 1)],
    "join with a sheet, exported with GET .../sheets/{sheet_id}/export?format=parquet": [
        ("free", 1.0),
        ("paid", 6.0),
    ],
}


def recipes() -> dict[str, list[str]]:
    found = re.split(r"^-- (.+)$", RECIPES, flags=re.MULTILINE)[1:]
    return {name: split_statements(text) for name, text in zip(found[::2], found[1::2], strict=True)}


def test_every_recipe_answers_on_the_published_file(filled: Store) -> None:
    with duckdb.connect(str(filled.data.path("views/default.duckdb")), read_only=True) as lake:
        answers = {
            name: [lake.execute(one).fetchall() for one in statements]
            for name, statements in recipes().items()
        }
    for name, expected in EXPECTED.items():
        assert sorted(answers[name][0]) == sorted(expected), name
    assert answers["cost by a key of the metadata, and which keys there are"][1] == [("customer", 3, 2)]
    ((_as_of, last_id, rows),) = answers["until when the views speak"][0]
    assert (last_id, rows) == (4, 3)
    assert set(answers) - {"until when the views speak"} == set(EXPECTED)


def test_every_recipe_counts_what_is_not_flushed_yet_at_the_command_line(filled: Store) -> None:
    add_logs(
        filled, 1, price=8.0, tags=["a"], metadata={"customer": "c1"}, score=Score("tone", 20), **times(10)
    )
    with open_ad_hoc(filled, "default") as views:
        for name, statements in recipes().items():
            for statement in statements:
                assert views._connection.execute(statement).fetchall(), name
        tone = recipes()["requests with a low score of some name"][0]
        assert views._connection.execute(tone).fetchall() == [(5, "gpt-4o", 20), (2, "gpt-4o", 30)]


def test_the_lines_for_a_notebook_work(filled: Store, tmp_path: Path) -> None:
    (tmp_path / ".promptlake").symlink_to(filled.settings.root)
    lines = README.split("<!-- notebook -->\n```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(lines, names)
    assert sorted(names["by_model"].rows()) == [("gpt-4o", 2, 3.0), ("m2", 1, 4.0)]
    assert names["newest"]["id"].to_list() == [3, 2, 1]


def test_a_file_attached_under_another_name_answers_too(filled: Store) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{filled.data.path('views/default.duckdb')}' AS lake (READ_ONLY)")
        for view in VIEWS:
            assert connection.execute(f"SELECT count(*) FROM lake.{view}").fetchall()[0][0] > 0
