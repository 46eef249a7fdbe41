"""jinja2 templates over HTTP: published, read, rendered, refused."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.test_templates import PUBLISH, body_of, completion, published


def jinja2(text: str) -> dict[str, Any]:
    return completion(text, template_format="jinja2")


def rendered(client: TestClient, name: str = "greeting", **values: Any) -> str:
    answer = client.post(f"/prompt-templates/{name}", json={"input_variables": values})
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["prompt_template"]["content"][0]["text"]
    return text


def test_a_jinja2_template_is_published_with_its_variables_and_rendered(client: TestClient) -> None:
    source = "Dear {{ user.name }},{% for item in items %}\n- {{ item }}{% endfor %}"
    version = published(client, template=jinja2(source))
    assert version["prompt_template"] == {**jinja2(source), "input_variables": ["user", "items"]}
    raw = client.get("/prompt-templates/greeting").json()
    assert raw["prompt_template"]["content"][0]["text"] == source
    assert rendered(client, user={"name": "Ada"}, items=["a", 1]) == "Dear Ada,\n- a\n- 1"


def test_a_chat_may_mix_languages_and_variables_keep_their_order(client: TestClient) -> None:
    def message(text: str, **more: Any) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": text}], **more}

    chat = {
        "type": "chat",
        "messages": [
            message("{a} {{b}}"),
            message("{{ c }} {d}", template_format="jinja2"),
            message("{e}"),
            message("{{ a }}{{ f }}", template_format="jinja2"),
        ],
    }
    version = published(client, template=chat)
    assert version["prompt_template"]["input_variables"] == ["a", "c", "e", "f"]
    body = {"input_variables": {name: name.upper() for name in "abcdef"}}
    messages = client.post("/prompt-templates/greeting", json=body).json()["prompt_template"]["messages"]
    assert [m["content"][0]["text"] for m in messages] == ["A {b}", "C {d}", "E", "AF"]


def test_missing_and_null_variables_render_empty_with_a_warning(client: TestClient) -> None:
    published(client, template=jinja2("[{{ x }}|{{ y.z }}|{{ w }}]"))
    answer = client.post("/prompt-templates/greeting", json={"input_variables": {"w": None, "v": 1}}).json()
    assert answer["prompt_template"]["content"][0]["text"] == "[||]"
    assert "rendered empty: x, y, w" in answer["warning"]
    assert "does not read: v" in answer["warning"]


def test_a_template_without_texts_needs_no_worker(client: TestClient) -> None:
    empty = {"type": "completion", "content": [], "template_format": "jinja2"}
    assert published(client, template=empty)["prompt_template"]["input_variables"] == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("one\ntwo {{ 1 + }}", "prompt_template.content.0.text: line 2, position 12: "),
        ("{% if x %}", "prompt_template.content.0.text: line 1, position "),
        ("{% nonsense %}", "unknown statement nonsense"),
    ],
)
def test_what_does_not_parse_is_not_published(client: TestClient, source: str, words: str) -> None:
    answer = client.post(PUBLISH, json=body_of(template=jinja2(source)))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_config")
    assert words in answer.json()["message"]
    assert client.get("/prompt-templates/greeting").status_code == 404


@pytest.mark.parametrize(
    "source",
    [
        "{{ x.y() }}",
        "{{ 1 + [] }}",
        "{% include '/etc/passwd' %}",
        "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_what_does_not_render_is_a_bad_request_and_the_next_render_works(
    client: TestClient, source: str
) -> None:
    published(client, "good", jinja2("{{ x }}"))
    published(client, "bad", jinja2(source))
    answer = client.post("/prompt-templates/bad", json={"input_variables": {"x": "secret value"}})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_config")
    assert answer.json()["message"].startswith("prompt_template.content.0.text: ")
    assert "secret value" not in answer.text
    assert rendered(client, "good", x=1) == "1"


def test_many_callers_of_two_workspaces_get_their_own_answers(client: TestClient, foreign_key: str) -> None:
    published(client, template=jinja2("ours {{ n }}"))
    theirs = {"X-API-KEY": foreign_key}
    client.post(PUBLISH, json=body_of(template=jinja2("theirs {{ n }}")), headers=theirs)

    def ask(number: int) -> str:
        headers = theirs if number % 2 else {}
        body = {"input_variables": {"n": number}}
        answer = client.post("/prompt-templates/greeting", json=body, headers=headers)
        text: str = answer.json()["prompt_template"]["content"][0]["text"]
        return text

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(80)))
    assert answers == [f"{'theirs' if n % 2 else 'ours'} {n}" for n in range(80)]
