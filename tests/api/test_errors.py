import logging
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.uploading import make_table


def test_an_unknown_path_and_a_wrong_method_share_the_one_error_body(client: TestClient) -> None:
    for method, path, status, code in [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/health", 405, "method_not_allowed"),
    ]:
        answer = client.request(method, path)
        assert answer.status_code == status
        assert answer.json()["success"] is False
        assert answer.json()["error"] == code
        assert answer.headers["x-request-id"]


def test_a_fixed_path_is_not_read_as_an_id_of_its_neighbour(client: TestClient) -> None:
    for path, allowed in [
        ("requests/search", "POST"),
        ("requests/analytics", "POST"),
        ("requests/batch", "POST"),
        ("requests/delete", "POST"),
        ("requests/suggestions", "GET"),
        ("folders/entities", "GET, POST"),
        ("folders/resolve-id", "GET"),
    ]:
        for method in sorted({"GET", "POST", "PUT", "PATCH", "DELETE"} - set(allowed.split(", "))):
            answer = client.request(method, f"/api/public/v2/{path}")
            assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed"), (method, path)
            assert answer.headers["allow"] == allowed
            assert answer.headers["x-request-id"]


def test_a_wrong_method_is_told_all_methods_of_the_path(client: TestClient) -> None:
    for path, allowed in [
        ("/api/public/v2/requests/1", "DELETE, GET"),
        ("/api/public/v2/tables/x", "DELETE, GET, PATCH"),
    ]:
        answer = client.put(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_a_path_cannot_write_lines_of_its_own_into_the_log(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client.get("/workflows/a%0aGET%20/forged%1b%5b31m%00")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "promptlake.api"]
    assert line.isprintable()
    assert line.startswith("GET /workflows/a%0AGET%20/forged%1B%5B31m%00 404 ")


def test_the_documentation_page_needs_no_internet(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert "cdn" not in page.text
    assert client.get("/docs/swagger-ui-bundle.js").status_code == 200
    assert client.get("/openapi.json").json()["info"]["version"] == "1.0.0"


@pytest.mark.parametrize(
    ("path", "body", "loc"),
    [
        (
            "{sheets}",
            {"source": {"type": "file", "file_name": "a.txt", "file_content_base64": "QQ=="}},
            ["body", "source", "file_name"],
        ),
        (
            "{sheets}",
            {"source": {"type": "request_logs", "sort_by": "cost"}},
            ["body", "source"],
        ),
        (
            "/rest/prompt-templates",
            {
                "prompt_template": {"prompt_name": "p"},
                "prompt_version": {"prompt_template": {"type": "chat", "messages": [{"content": []}]}},
            },
            ["body", "prompt_version", "prompt_template", "messages", "0", "role"],
        ),
        (
            "/log-request",
            {"input": {"type": "chat", "messages": [{"role": "user", "content": "plain"}]}},
            ["body", "input", "messages", "0", "content"],
        ),
    ],
)
def test_what_does_not_fit_is_told_by_the_path_that_the_caller_wrote(
    client: TestClient, path: str, body: dict[str, Any], loc: list[str]
) -> None:
    answer = client.post(path.format(sheets=make_table(client)), json=body)
    assert answer.status_code == 422
    problems = answer.json()["detail"]
    assert loc in [problem["loc"] for problem in problems]
    assert not [problem for problem in problems if "Value error" in problem["msg"]]
    assert "Value error" not in answer.json()["message"]


@pytest.mark.parametrize("media", [None, "application/x-www-form-urlencoded", "text/plain", "text/json"])
def test_a_body_is_read_as_json_whatever_it_calls_itself(client: TestClient, media: str | None) -> None:
    headers = {} if media is None else {"Content-Type": media}
    answer = client.post("/api/public/v2/tables", content=b'{"title": "Answers"}', headers=headers)
    assert (answer.status_code, answer.json()["table"]["title"]) == (201, "Answers")
    answer = client.post("/api/public/v2/tables", content=b"title=Answers", headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert "no valid JSON" in answer.json()["message"]
