"""Tracking over HTTP (E2 and companions), on the paths with the key in the header and in the body."""

from typing import Any

import duckdb
import pytest
from starlette.testclient import TestClient

from storage.domain.request_logs import LogFilter
from storage.log_flush import flush_logs, flush_plan, publish_views
from storage.request_logs import scan_request_logs
from storage.sql import open_ad_hoc
from storage.store import Store
from storage.workspaces import create_key
from tests.conftest import KEY
from tests.logs import add_logs, exchange

REQUEST = "/api/public/v2/requests"


def log(client: TestClient, **changes: Any) -> int:
    return int(client.post("/log-request", json=exchange(**changes)).json()["id"])


def read(client: TestClient, request_id: int) -> dict[str, Any]:
    return dict(client.get(f"{REQUEST}/{request_id}").json())


def exact(store: Store, query: str, tmp_path: Any) -> list[str]:
    """Answer of `promptlake sql`, as lines of CSV without the header."""
    path = tmp_path / "answer.csv"
    with open_ad_hoc(store, "default") as asked, path.open("w") as file:
        asked.write_csv(query, file)
    return path.read_text().splitlines()[1:]


def publish(client: TestClient, name: str = "greet") -> None:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {"prompt_template": {"prompt_name": name}, "prompt_version": {"prompt_template": blueprint}}
    assert client.post("/rest/prompt-templates", json=body).status_code == 201


@pytest.mark.parametrize("flushed", [False, True])
def test_a_score_is_there_at_once_and_a_repeat_replaces(
    client: TestClient, store: Store, tmp_path: Any, flushed: bool
) -> None:
    request_id = log(client)
    if flushed:
        flush_logs(store)
    answer = client.post("/rest/track-score", json={"request_id": request_id, "score": 0})
    assert (answer.status_code, answer.json()) == (200, {"success": True, "message": "Score tracked"})
    for score in (40, 90):
        body = {"request_id": request_id, "score": score, "name": "tone"}
        assert client.post("/rest/track-score", json=body).status_code == 200
    assert read(client, request_id)["scores"] == {"default": 0, "tone": 90}
    seen = exact(store, "SELECT request_id, name, score FROM scores ORDER BY name", tmp_path)
    assert seen == [f"{request_id},default,0", f"{request_id},tone,90"]


@pytest.mark.parametrize("flushed", [False, True])
def test_metadata_is_added_and_the_same_key_replaces(
    client: TestClient, store: Store, tmp_path: Any, flushed: bool
) -> None:
    request_id, other = log(client, metadata={"a": "1", "b": "2"}), log(client, metadata={"a": "1"})
    if flushed:
        flush_logs(store)
    for said in ({"b": "3"}, {"c": "4", "b": "5"}, {}):
        body = {"request_id": request_id, "metadata": said}
        assert client.post("/rest/track-metadata", json=body).status_code == 200
    wanted = {"a": "1", "b": "5", "c": "4"}

    def check() -> None:
        assert read(client, request_id)["metadata"] == wanted
        assert read(client, other)["metadata"] == {"a": "1"}
        rows = [row for batch in scan_request_logs(store, 1, LogFilter()) for row in batch.to_pylist()]
        assert {row["id"]: dict(row["metadata"]) for row in rows} == {request_id: wanted, other: {"a": "1"}}
        by_id = [
            row for b in scan_request_logs(store, 1, LogFilter(ids=(request_id,))) for row in b.to_pylist()
        ]
        assert [dict(row["metadata"]) for row in by_id] == [wanted]
        query = "SELECT metadata['b'] FROM request_logs WHERE metadata['c'] = '4'"
        assert exact(store, query, tmp_path) == ["5"]

    check()
    flush_logs(store)
    check()


def test_the_published_views_show_what_was_said_of_flushed_logs(client: TestClient, store: Store) -> None:
    request_id = log(client, metadata={"a": "1"})
    log(client)
    flush_logs(store)
    assert not flush_plan(store).publish
    body = {"request_id": request_id, "metadata": {"a": "2", "'": "\u0000"}}
    assert client.post("/rest/track-metadata", json=body).status_code == 200
    assert flush_plan(store).publish
    publish_views(store, everything=True)
    assert not flush_plan(store).publish
    path = str(store.data.path("views/default.duckdb"))
    with duckdb.connect(path, read_only=True) as lake:
        found = lake.execute("SELECT id, metadata FROM request_logs ORDER BY id").fetchall()
        described = [row[0] for row in lake.execute("DESCRIBE request_logs").fetchall()]
    assert dict(found) == {request_id: {"a": "2", "'": "\u0000"}, request_id + 1: {}}
    assert described[0] == "id"


def test_what_was_said_before_the_flush_is_folded_into_the_file(client: TestClient, store: Store) -> None:
    request_id = log(client)
    client.post("/rest/track-metadata", json={"request_id": request_id, "metadata": {"a": "2"}})
    flush_logs(store)
    with store.logs.read() as connection:
        left = connection.exec_driver_sql("SELECT count(*) FROM log_patches").scalar()
    assert left == 0
    assert read(client, request_id)["metadata"] == {"a": "2"}


@pytest.mark.parametrize("flushed", [False, True])
def test_a_request_is_linked_to_its_prompt(client: TestClient, store: Store, flushed: bool) -> None:
    publish(client)
    publish(client)
    request_id = log(client, prompt_input_variables={"x": "old"})
    if flushed:
        flush_logs(store)
    body = {"request_id": request_id, "prompt_name": "greet", "version": 2}
    assert client.post("/rest/track-prompt", json=body).status_code == 200
    found = read(client, request_id)
    assert (found["prompt_name"], found["prompt_version_number"]) == ("greet", 2)
    assert found["prompt_input_variables"] == {"x": "old"}
    more = {"request_id": request_id, "prompt_id": found["prompt_id"], "prompt_input_variables": {"x": 1}}
    assert client.post("/rest/track-prompt", json=more).status_code == 200
    found = read(client, request_id)
    assert (found["prompt_version_number"], found["prompt_input_variables"]) == (None, {"x": 1})
    flush_logs(store)
    (batch,) = scan_request_logs(store, 1, LogFilter(prompt_name="greet"))
    (row,) = batch.to_pylist()
    assert (row["id"], row["prompt_input_variables"]) == (request_id, '{"x":1}')


def test_a_label_means_the_version_that_it_names_now(client: TestClient) -> None:
    publish(client)
    blueprint = {"type": "completion", "content": []}
    prompt = {"prompt_template": {"prompt_name": "greet"}, "prompt_version": {"prompt_template": blueprint}}
    assert (
        client.post("/rest/prompt-templates", json=prompt | {"release_labels": ["prod"]}).status_code == 201
    )
    request_id = log(client)
    body = {"request_id": request_id, "prompt_name": "greet", "label": "prod"}
    assert client.post("/rest/track-prompt", json=body).status_code == 200
    assert read(client, request_id)["prompt_version_number"] == 2
    assert client.post("/rest/track-prompt", json=body | {"label": "none"}).status_code == 404
    assert client.post("/rest/track-prompt", json=body | {"version": 1}).status_code == 422


def test_a_request_is_put_into_a_group_and_moved(client: TestClient) -> None:
    request_id = log(client, metadata={"a": "1"})
    made = [client.post("/rest/create-group", json={}) for _ in range(2)]
    assert [one.status_code for one in made] == [201, 201]
    for one in made:
        body = {"request_id": request_id, "group_id": one.json()["id"]}
        assert client.post("/rest/track-group", json=body).status_code == 200
    assert read(client, request_id)["metadata"] == {"a": "1", "group_id": str(made[1].json()["id"])}
    assert (
        client.post("/rest/track-group", json={"request_id": request_id, "group_id": 99}).status_code == 404
    )


@pytest.mark.parametrize("flushed", [False, True])
def test_searches_and_suggestions_know_what_was_said(client: TestClient, store: Store, flushed: bool) -> None:
    publish(client)
    first, second, third = (log(client, metadata={"a": "1"}) for _ in range(3))
    if flushed:
        flush_logs(store)
    said = {"request_id": second, "metadata": {"a": "2", "b": "x"}}
    client.post("/rest/track-metadata", json=said)
    client.post("/rest/track-prompt", json={"request_id": first, "prompt_name": "greet", "version": 1})
    client.post("/rest/track-score", json={"request_id": third, "score": 7})

    def found(**test: Any) -> set[int]:
        body = {"filter_group": {"logic": "AND", "filters": [test]}}
        return {one["id"] for one in client.post(f"{REQUEST}/search", json=body).json()["items"]}

    def suggested(**query: str) -> list[str]:
        return list(client.get(f"{REQUEST}/suggestions", params=query).json()["values"])

    assert found(field="metadata", nested_key="a", operator="key_equals", value="2") == {second}
    assert found(field="metadata", nested_key="a", operator="key_equals", value="1") == {first, third}
    assert found(field="prompt", operator="is", value="greet") == {first}
    assert found(field="score", operator="eq", value=7) == {third}
    assert suggested(field="metadata_keys") == ["a", "b"]
    assert suggested(field="metadata_values", metadata_key="a") == ["1", "2"]
    assert suggested(field="prompt") == ["greet"]


CALLS = {
    "/rest/track-score": {"score": 1},
    "/rest/track-metadata": {"metadata": {"a": "b"}},
    "/rest/track-prompt": {"prompt_name": "greet"},
    "/rest/track-group": {"group_id": 1},
    "/library-track-score": {"score": 1},
    "/library-track-metadata": {"metadata": {"a": "b"}},
    "/library-track-prompt": {"prompt_name": "greet"},
    "/track-group": {"group_id": 1},
}


@pytest.mark.parametrize("path", CALLS)
@pytest.mark.parametrize("flushed", [False, True])
def test_unknown_and_foreign_requests_are_not_found(
    client: TestClient, store: Store, foreign_key: str, path: str, flushed: bool
) -> None:
    publish(client)
    client.post("/create-group", json={})
    # ids of both workspaces alternate, so that a segment spans ids that are not its own
    ids = [add_logs(store, 1, workspace_id=workspace)[0] for workspace in (1, 2, 1)]
    if flushed:
        flush_logs(store)
    for request_id in (ids[1], 99, 2**63 - 1):
        answer = client.post(path, json={"request_id": request_id, **CALLS[path]})
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert client.post(path, json={"request_id": ids[2], **CALLS[path]}).status_code == 200
    mine = client.post(path, json={"request_id": ids[0], **CALLS[path]}, headers={"X-API-KEY": foreign_key})
    assert mine.status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "loc"),
    [
        ("/rest/track-score", {"score": 1}, "request_id"),
        ("/rest/track-score", {"request_id": 1, "score": 101}, "score"),
        ("/rest/track-score", {"request_id": 1, "score": -1}, "score"),
        ("/rest/track-score", {"request_id": 1, "score": 1.5}, "score"),
        ("/rest/track-score", {"request_id": 1, "score": True}, "score"),
        ("/rest/track-score", {"request_id": "1", "score": 1}, "request_id"),
        ("/rest/track-score", {"request_id": 2**63, "score": 1}, "request_id"),
        ("/rest/track-score", {"request_id": 0, "score": 1}, "request_id"),
        ("/rest/track-score", {"request_id": 1, "score": 1, "name": ""}, "name"),
        ("/rest/track-score", {"request_id": 1, "score": 1, "nmae": "x"}, "nmae"),
        ("/rest/track-metadata", {"request_id": 1, "metadata": {"a": 1}}, "metadata.a"),
        ("/rest/track-metadata", {"request_id": 1, "metadata": {"a": None}}, "metadata.a"),
        ("/rest/track-metadata", {"request_id": 1, "metadata": ["a"]}, "metadata"),
        ("/rest/track-metadata", {"request_id": 1, "metadata": {"k" * 1025: "v"}}, "metadata"),
        ("/rest/track-prompt", {"request_id": 1}, ""),
        ("/rest/track-prompt", {"request_id": 1, "prompt_name": "a", "version": 0}, "version"),
        ("/rest/track-group", {"request_id": 1, "group_id": "x"}, "group_id"),
        ("/library-track-score", {"request_id": "x", "score": 1}, "request_id"),
        ("/library-track-metadata", {"request_id": 1, "metadata": None}, "metadata"),
        ("/library-track-prompt", {"request_id": 1, "version": 1}, ""),
    ],
)
def test_wrong_values_are_told_by_their_place(
    client: TestClient, path: str, body: dict[str, Any], loc: str
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    found = ".".join(answer.json()["detail"][0]["loc"])
    assert found.startswith(f"body.{loc}" if loc else "body"), found


def test_metadata_of_one_request_is_bounded(client: TestClient) -> None:
    request_id = log(client)
    body = {"request_id": request_id, "metadata": {"a": "x" * 600_000}}
    assert client.post("/rest/track-metadata", json=body).status_code == 200
    body = {"request_id": request_id, "metadata": {"b": "x" * 600_000}}
    assert client.post("/rest/track-metadata", json=body).status_code == 422
    assert set(read(client, request_id)["metadata"]) == {"a"}


def test_the_key_of_older_clients_stands_in_the_body(client: TestClient, store: Store) -> None:
    publish(client)
    request_id = log(client)
    del client.headers["X-API-KEY"]
    key = {"api_key": KEY, "request_id": request_id, "sent_by_a_newer_client": 1}
    group = client.post("/create-group", json={"api_key": KEY})
    assert (group.status_code, type(group.json()["id"])) == (200, int)
    for path, body in {
        "/library-track-score": {"score": 7, "name": "tone"},
        "/library-track-metadata": {"metadata": {"a": "b"}},
        "/library-track-prompt": {
            "prompt_name": "greet",
            "prompt_input_variables": {"x": 1},
            "version": None,
            "label": None,
        },
        "/track-group": {"group_id": group.json()["id"]},
    }.items():
        assert client.post(path, json=key | body).status_code == 200, path
    found = client.get(f"{REQUEST}/{request_id}", headers={"X-API-KEY": KEY}).json()
    assert found["scores"] == {"tone": 7}
    assert found["metadata"] == {"a": "b", "group_id": str(group.json()["id"])}
    assert (found["prompt_name"], found["prompt_input_variables"]) == ("greet", {"x": 1})


def test_a_key_in_the_body_is_checked_like_one_in_the_header(client: TestClient, store: Store) -> None:
    reader = create_key(store, scopes=["read"])[1]
    del client.headers["X-API-KEY"]
    for content, status, error in (
        (b"", 401, "unauthorized"),
        (b"{", 401, "unauthorized"),
        (b"[]", 401, "unauthorized"),
        (b'{"api_key": 7}', 401, "unauthorized"),
        (b'{"api_key": "wrong"}', 401, "unauthorized"),
        (b'{"api_key": "\xc3\xbc"}', 401, "unauthorized"),
        (b'{"api_key": "%s"}' % reader.encode(), 403, "forbidden"),
    ):
        answer = client.post("/create-group", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (status, error), content
    header = {"X-API-KEY": KEY, "Content-Type": "application/json"}
    assert client.post("/create-group", content=b"{", headers=header).status_code == 400
    assert client.post("/create-group", json={}, headers=header).status_code == 200
