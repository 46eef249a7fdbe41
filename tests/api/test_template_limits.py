"""Templates made to hurt are refused with a sentence, in bounded time, and the next render works."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from storage.domain.blueprints import MAX_BLUEPRINT_BYTES
from storage.domain.templates import MAX_RENDERED
from tests.api.test_templates import PUBLISH, body_of, completion, published
from tests.api.test_templates_jinja2 import jinja2, rendered

SECONDS = 20.0


@pytest.fixture(autouse=True)
def quick(client: TestClient) -> Any:
    """Every test here takes little CPU time, and leaves a service that renders."""
    published(client, "good", completion("ok {x}"))
    started = time.process_time()
    yield
    assert rendered(client, "good", x=1) == "ok 1"
    assert time.process_time() - started < SECONDS


def sized(size: int, **more: Any) -> dict[str, Any]:
    """A completion template of so many bytes as JSON."""
    missing = size - len(str(completion("", **more)).replace("'", '"'))
    return completion("x" * missing, **more)


@pytest.mark.parametrize("language", ["f-string", "jinja2"])
def test_a_template_of_a_megabyte_is_taken_and_one_byte_more_is_not(
    client: TestClient, language: str
) -> None:
    largest = sized(MAX_BLUEPRINT_BYTES, template_format=language)
    published(client, "largest", largest)
    text = largest["content"][0]["text"]
    assert rendered(client, "largest") == text
    refused = client.post(
        PUBLISH, json=body_of("n", sized(MAX_BLUEPRINT_BYTES + 1, template_format=language))
    )
    assert (refused.status_code, refused.json()["error"]) == (422, "validation_error")
    assert refused.json()["detail"][0]["loc"] == ["body", "prompt_version", "prompt_template"]


def test_an_unknown_prompt_is_told_before_a_wrong_or_large_body(client: TestClient) -> None:
    large = b'{"input_variables": {"x": "%b"}}' % (b"v" * 11_000_000)
    for body, status in ((b"{", 400), (b"[]", 422), (large, 413), (b"null", 200), (b"", 200)):
        for name, wanted in (("good", status), ("none", 404)):
            answer = client.post(f"/prompt-templates/{name}", content=body)
            assert answer.status_code == wanted, (name, body[:9], answer.text)
            assert answer.headers["x-request-id"]


def test_metadata_has_the_same_limit(client: TestClient) -> None:
    for size, status in ((1_000_000, 201), (MAX_BLUEPRINT_BYTES, 422)):
        body = body_of("m")
        body["prompt_version"]["metadata"] = {"note": "x" * size}
        assert client.post(PUBLISH, json=body).status_code == status


def test_a_megabyte_of_fields_and_of_value_is_refused_before_it_is_made(client: TestClient) -> None:
    published(client, "bomb", completion("{x}" * 300_000))
    for value in ("v" * 1_000_000, {"k": ["v" * 100] * 10_000}):
        answer = client.post("/prompt-templates/bomb", json={"input_variables": {"x": value}})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_config")
        assert answer.json()["message"].endswith(f"over {MAX_RENDERED} characters")
        assert "vvv" not in answer.text
    assert rendered(client, "bomb", x="1") == "1" * 300_000


def test_the_texts_of_a_chat_count_together(client: TestClient) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "{x}"}]}
    published(client, "chat", {"type": "chat", "messages": [message] * 10})
    answer = client.post("/prompt-templates/chat", json={"input_variables": {"x": "v" * 1_000_000}})
    assert answer.status_code == 400
    assert "messages.8.content.0.text" in answer.json()["message"]


def test_many_variables_given_and_missing_are_told_in_few_words(client: TestClient) -> None:
    names = [f"v{number}" for number in range(60_000)]
    published(client, "many", completion("".join(f"{{{name}}}" for name in names)))
    values = {f"w{number}": "" for number in range(200_000)}
    answer = client.post("/prompt-templates/many", json={"input_variables": values})
    assert answer.status_code == 200
    assert "and 59950 more" in answer.json()["warning"]
    assert "and 199950 more" in answer.json()["warning"]
    published(client, "many", completion("".join(f"{{{name}x}}" for name in names)))
    changed = client.get("/prompt-templates/many/diff?from=1").json()["input_variables"]
    assert (len(changed["added"]), len(changed["removed"])) == (60_000, 60_000)


def test_references_that_leave_no_text_are_bounded_too(client: TestClient) -> None:
    published(client, "e", completion(""))
    many = client.post(PUBLISH, json=body_of("top", completion("@@@e@@@" * 140_000)))
    assert (many.status_code, many.json()["error"]) == (400, "invalid_config")
    assert "more than 10000 times" in many.json()["message"]
    for number in range(3):
        published(client, f"big{number}", completion("x" * 1_000_000))
    three = client.post(PUBLISH, json=body_of("top", completion("@@@big0@@@@@@big1@@@@@@big2@@@")))
    assert (three.status_code, three.json()["error"]) == (400, "invalid_config")


@pytest.mark.parametrize(
    "source",
    [
        "{x.__class__}",
        "{x.__init__.__globals__[os]}",
        "{x!r:{x}}",
        "{0.__class__}",
    ],
)
def test_an_f_string_cannot_walk_anywhere(client: TestClient, source: str) -> None:
    refused = client.post(PUBLISH, json=body_of("walk", completion(source)))
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_config")


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ x|attr('__class__') }}",
        "{{ range.__self__ }}",
    ],
)
def test_a_jinja2_text_that_walks_finds_nothing(client: TestClient, source: str) -> None:
    answer = client.post(PUBLISH, json=body_of("walk", jinja2(source)))
    if answer.status_code == 201:
        answer = client.post("/prompt-templates/walk", json={"input_variables": {"x": "v"}})
    assert answer.status_code in {200, 400}
    told = answer.json()["prompt_template"]["content"][0]["text"] if answer.status_code == 200 else ""
    assert told == ""


def test_publications_and_renders_at_once_see_whole_versions(client: TestClient) -> None:
    published(client, "s", completion("s1"))
    published(client, "busy", completion("1 @@@s@@@ {x}"), release_labels=["prod"])

    def publish(number: int) -> int:
        done = published(client, "busy", completion(f"{number} @@@s@@@ {{x}}"), release_labels=["prod"])
        return int(done["version_number"])

    def render(_: int) -> tuple[int, str]:
        body = {"label": "prod", "input_variables": {"x": "v"}}
        answer = client.post("/prompt-templates/busy", json=body).json()
        return answer["version_number"], answer["prompt_template"]["content"][0]["text"]

    with ThreadPoolExecutor(6) as threads:
        publishing = [threads.submit(publish, number) for number in range(100, 120)]
        seen = list(threads.map(render, range(60)))
        numbers = [done.result() for done in publishing]
    assert sorted(numbers) == list(range(2, 22))
    made = {number: f"{100 + index} s1 v" for index, number in enumerate(numbers)} | {1: "1 s1 v"}
    assert all(text == made[number] for number, text in seen)
