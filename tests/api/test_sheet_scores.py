"""The score of a sheet over HTTP: by columns, by code, kept with versions, listed."""

from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from storage.store import Store
from storage.workspaces import find_key
from tests.api.uploading import TABLES
from tests.conftest import KEY
from tests.importing import imported_sheet

TITLES = ["name", "right", "points", "word"]
ROWS = [["a", True, 1, "yes"], ["b", False, 2.5, "No"], ["c", True, None, "maybe"], ["d", None, 3, None]]


@pytest.fixture
def sheet(client: TestClient, store: Store) -> str:
    """The path of a sheet of four rows."""
    facts = find_key(store, KEY)
    assert facts is not None
    table_id = client.post(TABLES, json={}).json()["table"]["id"]
    made = imported_sheet(store, facts.principal, UUID(table_id), TITLES, ROWS)
    return f"{TABLES}/{table_id}/sheets/{made.id}"


def column_ids(client: TestClient, sheet: str, *titles: str) -> list[str]:
    page = client.get(f"{sheet}/columns").json()["data"]
    by_title = {column["title"]: column["id"] for column in page}
    return [by_title[title] for title in titles]


def configure(client: TestClient, sheet: str, **body: Any) -> dict[str, Any]:
    answer = client.patch(f"{sheet}/score", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def made(client: TestClient, sheet: str) -> dict[str, Any]:
    answer = client.post(f"{sheet}/score")
    assert answer.status_code == 200, answer.text
    return answer.json()["score"]


def test_a_sheet_that_was_never_scored_says_so(client: TestClient, sheet: str) -> None:
    assert client.get(f"{sheet}/score").json() == {
        "success": True,
        "score": {},
        "score_configuration": {"score_type": "auto"},
        "stale": False,
        "version": 2,
    }
    assert client.get(f"{sheet}/versions/score-history").json()["data"] == []


def test_columns_are_scored_by_their_values(client: TestClient, sheet: str) -> None:
    ids = column_ids(client, sheet, "right", "points", "word")
    assert configure(client, sheet, column_ids=ids)["version"] == 3
    score = made(client, sheet)
    assert score["score"] == pytest.approx((2 / 3 + 6.5 / 3) / 2)
    assert score["columns"] == [
        {"column_id": ids[0], "title": "right", "score_type": "boolean", "score": pytest.approx(2 / 3),
         "count": 3, "missing": 1, "others": 0},
        {"column_id": ids[1], "title": "points", "score_type": "numeric", "score": pytest.approx(6.5 / 3),
         "count": 3, "missing": 1, "others": 0},
        {"column_id": ids[2], "title": "word", "score_type": None, "score": None,
         "count": 0, "missing": 1, "others": 3},
    ]  # fmt: skip
    assert (score["score_type"], score["row_count"]) == ("auto", 4)
    read = client.get(f"{sheet}/score").json()
    assert (read["score"], read["stale"], read["version"]) == (score, False, 3)


@pytest.mark.parametrize(
    ("score_type", "right", "points", "word"),
    [("boolean", (2 / 3, 3), (1.0, 3), (0.5, 2)), ("numeric", (2 / 3, 3), (6.5 / 3, 3), (None, 0))],
)
def test_a_type_reads_every_column_as_that(
    client: TestClient, sheet: str, score_type: str, right: Any, points: Any, word: Any
) -> None:
    configure(
        client, sheet, score_type=score_type, column_ids=column_ids(client, sheet, "right", "points", "word")
    )
    found = [(one["score"], one["count"]) for one in made(client, sheet)["columns"]]
    assert found == [pytest.approx(right), pytest.approx(points), pytest.approx(word)]


def test_text_columns_alone_are_no_score(client: TestClient, sheet: str) -> None:
    score = made(client, sheet)
    assert (score["score"], score["columns"]) == (None, [])


def test_code_scores_all_rows(client: TestClient, sheet: str) -> None:
    code = "rows = data['rows']\nreturn {'score': sum(r['points'] or 0 for r in rows), 'n': len(rows)}"
    said = configure(client, sheet, score_type="custom", code=code)
    assert said["score_configuration"] == {"score_type": "custom", "code": code, "language": "PYTHON"}
    score = made(client, sheet)
    assert (score["score"], score["details"]) == (6.5, {"n": 4})
    configure(client, sheet, code="return data.rows.filter(r => r.right).length / 4", language="JAVASCRIPT")
    assert made(client, sheet)["score"] == 0.5


def test_code_that_fails_says_why(client: TestClient, sheet: str) -> None:
    configure(client, sheet, score_type="custom", code="x = 1\nreturn x / 0")
    score = made(client, sheet)
    assert (score["score"], score["error"]) == (None, "code_error")
    assert score["error_message"] == "Line 2: ZeroDivisionError: division by zero"
    configure(client, sheet, code="return 'much'")
    assert "must return a number" in made(client, sheet)["error_message"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"score_type": "best"}, 422, "score_type"),
        ({"score_type": "custom"}, 400, "code: is required"),
        ({"code": "return 1"}, 400, "code: goes with score_type custom"),
        ({"language": "PYTHON"}, 400, "language: goes with score_type custom"),
        ({"score_type": "custom", "code": "retrun 1"}, 400, "code: line 1"),
        ({"score_type": "custom", "code": "return 1", "language": "SQL"}, 422, "language"),
        (
            {"column_ids": ["00000000-0000-4000-8000-000000000000"]},
            400,
            "column_ids[0]: the sheet has no column",
        ),
        ({"column_ids": ["x"]}, 422, "column_ids"),
        ({"more": 1}, 422, "more"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    client: TestClient, sheet: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = client.patch(f"{sheet}/score", json=body)
    assert answer.status_code == status
    assert words in answer.json()["message"]
    assert client.get(f"{sheet}/score").json()["version"] == 2


def test_a_change_makes_a_version_and_no_change_makes_none(client: TestClient, sheet: str) -> None:
    (right,) = column_ids(client, sheet, "right")
    assert configure(client, sheet, score_type="boolean", column_ids=[right])["version"] == 3
    assert configure(client, sheet, score_type="boolean")["version"] == 3
    assert configure(client, sheet)["version"] == 3
    assert configure(client, sheet, column_ids=[])["score_configuration"] == {"score_type": "boolean"}
    version = client.get(f"{sheet}/versions/3").json()["version"]
    after = {"score_type": "boolean", "column_ids": [right]}
    assert version["score_configuration"] == after
    assert version["name"] == "Score configuration changed"
    assert version["deltas"][0]["after"] == {"score_configuration": after}


def test_scores_stay_with_their_versions(client: TestClient, sheet: str) -> None:
    (right,) = column_ids(client, sheet, "right")
    configure(client, sheet, score_type="boolean", column_ids=[right])
    first = made(client, sheet)
    page = client.get(f"{sheet}/rows").json()
    cell = page["data"][1]["cells"][right]["id"]
    assert client.patch(f"{sheet}/cells/{cell}", json={"value": True}).status_code == 200
    assert client.get(f"{sheet}/score").json()["stale"] is True
    client.post(f"{sheet}/versions", json={"name": "All right"})
    assert client.get(f"{sheet}/score").json()["score"] == {}
    second = made(client, sheet)
    assert (first["score"], second["score"]) == (pytest.approx(2 / 3), 1.0)
    assert [client.get(f"{sheet}/versions/{n}").json()["version"]["score"] for n in (2, 3, 4)] == [
        {},
        first,
        second,
    ]
    history = client.get(f"{sheet}/versions/score-history", params={"limit": 1}).json()
    assert [(one["version_number"], one["name"], one["score"]) for one in history["data"]] == [
        (4, "All right", second)
    ]
    more = {"limit": 1, "cursor": history["pagination"]["next_cursor"]}
    older = client.get(f"{sheet}/versions/score-history", params=more).json()
    assert [one["version_number"] for one in older["data"]] == [3]
    assert older["pagination"]["has_more"] is False


def test_a_column_that_is_gone_counts_no_more(client: TestClient, sheet: str, store: Store) -> None:
    with store.catalog.transaction() as connection:
        connection.exec_driver_sql("UPDATE columns SET deleted_at = created_at WHERE title = 'right'")
    assert [one["title"] for one in made(client, sheet)["columns"]] == []


def test_a_version_saved_of_what_was_scored_has_the_score_and_so_has_its_restore(
    client: TestClient, sheet: str
) -> None:
    score = made(client, sheet)
    named = client.post(f"{sheet}/versions", json={"name": "scored"}).json()["version"]
    assert named["score"] == score
    read = client.get(f"{sheet}/score").json()
    assert (read["score"], read["stale"], read["version"]) == (score, False, 3)
    row = client.get(f"{sheet}/rows?limit=1").json()["data"][0]
    cell = row["cells"][column_ids(client, sheet, "name")[0]]["id"]
    client.patch(f"{sheet}/cells/{cell}", json={"value": "other"})
    assert client.get(f"{sheet}/score").json()["stale"]
    # what was not scored has no score
    later = client.post(f"{sheet}/versions", json={"name": "edited"}).json()["version"]
    assert later["score"] == {}
    restored = client.post(f"{sheet}/versions", json={"source_version_id": named["id"]}).json()["version"]
    assert restored["score"] == score
    assert client.get(f"{sheet}/score").json()["stale"] is False
    history = client.get(f"{sheet}/versions/score-history").json()["data"]
    assert [one["version_number"] for one in history] == [5, 3, 2]
