import logging

import pytest
from starlette.testclient import TestClient


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
