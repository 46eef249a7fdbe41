"""Snippets over HTTP: resolved where templates are rendered, checked where they are published."""

from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from storage.engine.schema import prompt_includes
from storage.store import Store
from tests.api.test_templates import PUBLISH, body_of, completion, published
from tests.api.test_templates_jinja2 import jinja2


def text_of(answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["prompt_template"]["content"][0]["text"]
    return text


def rendered(client: TestClient, name: str = "top", **values: Any) -> str:
    return text_of(client.post(f"/prompt-templates/{quote(name)}", json={"input_variables": values}))


def refused(client: TestClient, name: str, template: Any, **more: Any) -> tuple[int, str, str]:
    answer = client.post(PUBLISH, json=body_of(name, template, **more))
    return answer.status_code, answer.json()["error"], answer.json()["message"]


def test_snippets_are_resolved_when_rendered_and_left_when_read(client: TestClient) -> None:
    published(client, "style/tone of voice", completion("Be {mood}."))
    source = "@@@style/tone of voice@@@ Say {x}."
    one = published(client, "top", completion(source))
    assert one["prompt_template"]["input_variables"] == ["mood", "x"]
    assert text_of(client.get("/prompt-templates/top")) == source
    assert text_of(client.get("/prompt-templates/top?resolve_snippets=true")) == "Be {mood}. Say {x}."
    answer = client.post(
        "/prompt-templates/top", json={"input_variables": {"mood": "kind", "x": "@@@nothing@@@"}}
    )
    assert text_of(answer) == "Be kind. Say @@@nothing@@@."
    assert answer.json()["warning"] is None
    assert text_of(client.post("/prompt-templates/top", json={})) == "Be {mood}. Say {x}."


def test_the_latest_version_is_included_and_pins_hold(client: TestClient) -> None:
    published(client, "tone", completion("one"), release_labels=["prod/eu"])
    published(client, "top", completion("@@@tone@@@,@@@tone|label:prod/eu@@@,@@@tone@version_number:1@@@"))
    assert rendered(client) == "one,one,one"
    published(client, "tone", completion("two {new}"))
    assert rendered(client, new="!") == "two !,one,one"
    resolved = client.get("/prompt-templates/top?resolve_snippets=true").json()
    assert resolved["prompt_template"]["input_variables"] == ["new"]
    published(client, "tone", completion("three"), release_labels=["prod/eu"])
    assert rendered(client) == "three,three,one"


def test_a_chat_includes_snippets_in_every_message(client: TestClient) -> None:
    published(client, "tone", completion("Be kind."))
    message = {"role": "user", "content": [{"type": "text", "text": "@@@tone@@@ {q}"}]}
    published(client, "chat", {"type": "chat", "messages": [{**message, "role": "system"}, message]})
    answer = client.post(
        "/prompt-templates/chat", json={"input_variables": {"q": "Why?"}, "model": "m"}
    ).json()
    texts = [m["content"][0]["text"] for m in answer["prompt_template"]["messages"]]
    assert texts == ["Be kind. Why?"] * 2
    assert answer["llm_kwargs"]["messages"][1]["content"][0]["text"] == "Be kind. Why?"


def test_jinja2_snippets_share_the_scope_of_what_includes_them(client: TestClient) -> None:
    published(client, "line", jinja2("- {{ item }}{{ end }}"))
    top = published(client, "top", jinja2("{% for item in items %}@@@line@@@{% endfor %}"))
    assert top["prompt_template"]["input_variables"] == ["items", "end"]
    assert rendered(client, items=["a", "b"], end=";") == "- a;- b;"


def test_unknown_snippets_are_refused_at_publish(client: TestClient) -> None:
    for text in ("@@@none@@@", "@@@top@@@ x", "@@@tone|label:prod@@@", "@@@tone|version_number:2@@@"):
        published(client, "tone", completion("x")) if text == "@@@tone|label:prod@@@" else None
        status, error, message = refused(client, "other", completion(text))
        assert (status, error) == (400, "invalid_config")
        assert text.removesuffix(" x") in message
    assert client.get("/prompt-templates/other").status_code == 404


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"type": "chat", "messages": []}, "only completion templates"),
        ({"type": "completion", "content": [{"type": "image_url", "image_url": {}}]}, "no text"),
    ],
)
def test_only_texts_can_be_included(client: TestClient, template: Any, words: str) -> None:
    published(client, "tone", template)
    status, error, message = refused(client, "top", completion("@@@tone@@@"))
    assert (status, error) == (400, "invalid_config")
    assert words in message


def test_what_a_text_comes_to_must_parse(client: TestClient) -> None:
    published(client, "plain", completion("x"))
    published(client, "loop", jinja2("{% for i in a %}{{ i }}{% endfor %}"))
    assert refused(client, "top", completion("@@@plain@@@ {"))[:2] == (400, "invalid_config")
    assert "in jinja2" in refused(client, "top", completion("@@@loop@@@"))[2]
    assert refused(client, "top", jinja2("{% if x %}@@@loop@@@"))[:2] == (400, "invalid_config")


def test_circles_are_refused_with_their_path(client: TestClient) -> None:
    status, error, message = refused(client, "a", completion("@@@a@@@"))
    assert (status, error) == (400, "dependency_cycle")
    assert message.endswith("a -> a")
    published(client, "a", completion("x"))
    published(client, "b", completion("@@@a@@@"))
    published(client, "c", completion("@@@b@@@"))
    assert refused(client, "a", completion("@@@c@@@"))[2].endswith("a -> c -> b -> a")
    assert client.get("/prompt-templates/a").json()["version_number"] == 1
    # an older version of itself is no circle
    published(client, "a", completion("@@@a|version_number:1@@@ y"))
    assert rendered(client, "c") == "x y"


def test_a_circle_by_a_label_is_refused_when_the_label_moves(client: TestClient) -> None:
    one = published(client, "a", completion("x"), release_labels=["prod"])
    published(client, "b", completion("@@@a|label:prod@@@"))
    published(client, "a", completion("@@@b@@@"))
    (label,) = client.get("/prompt-templates/a/labels").json()["release_labels"]
    moved = client.patch(f"/prompt-labels/{label['release_label_id']}", json={"prompt_version_number": 2})
    assert (moved.status_code, moved.json()["error"]) == (400, "dependency_cycle")
    assert refused(client, "a", completion("@@@b@@@"), release_labels=["prod"])[1] == "dependency_cycle"
    labelled = client.get("/prompt-templates/a?label=prod").json()
    assert labelled["prompt_version_id"] == one["prompt_version_id"]
    assert rendered(client, "a") == "x"


def test_a_bomb_of_snippets_is_refused_and_the_next_render_works(client: TestClient) -> None:
    published(client, "s0", completion("ha" * 500))
    for level in range(1, 3):
        published(client, f"s{level}", completion(f"@@@s{level - 1}@@@" * 30))
    for _ in range(2):
        status, error, message = refused(client, "s3", completion("@@@s2@@@" * 30))
        assert (status, error) == (400, "invalid_config")
        assert "1048576 bytes" in message
    assert rendered(client, "s2") == "ha" * 450_000


def test_a_snippet_that_grows_too_large_fails_where_it_is_rendered(client: TestClient) -> None:
    published(client, "s", completion("x"))
    published(client, "top", completion("@@@s@@@" * 20))
    published(client, "s", completion("y" * 100_000))
    answer = client.post("/prompt-templates/top", json={"input_variables": {}})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_config")
    assert answer.json()["message"].startswith("prompt_template.content.0.text: with its snippets")
    published(client, "s", completion("z"))
    assert rendered(client) == "z" * 20


def test_snippets_of_another_workspace_are_unknown(client: TestClient, foreign_key: str) -> None:
    theirs = {"X-API-KEY": foreign_key}
    client.post(PUBLISH, json=body_of("tone", completion("theirs")), headers=theirs)
    assert refused(client, "top", completion("@@@tone@@@"))[0] == 400
    published(client, "tone", completion("ours"))
    published(client, "top", completion("@@@tone@@@"))
    assert rendered(client) == "ours"


def test_a_snippet_in_use_is_neither_deleted_nor_renamed_and_a_pinned_label_stays(client: TestClient) -> None:
    published(client, "tone", completion("x"), release_labels=["prod", "free"])
    published(client, "top", completion("@@@tone|label:prod@@@"))
    labels = client.get("/prompt-templates/tone/labels").json()["release_labels"]
    ids = {label["release_label"]: label["release_label_id"] for label in labels}
    for answer in (
        client.delete("/prompt-templates/tone"),
        client.patch("/prompt-templates/tone", json={"prompt_name": "voice"}),
        client.delete(f"/prompt-labels/{ids['prod']}"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
        assert "top" in answer.json()["message"]
    assert client.delete(f"/prompt-labels/{ids['free']}").status_code == 200
    published(client, "top", completion("without"))
    assert client.delete("/prompt-templates/tone").status_code == 200
    # an older version that nobody uses says what it lacks
    old = client.post("/prompt-templates/top", json={"version": 1})
    assert (old.status_code, old.json()["error"]) == (400, "invalid_config")
    assert text_of(client.get("/prompt-templates/top?version=1")) == "@@@tone|label:prod@@@"


def test_a_version_that_a_label_names_is_in_use(client: TestClient) -> None:
    published(client, "tone", completion("x"))
    published(client, "top", completion("@@@tone@@@"), release_labels=["prod"])
    published(client, "top", completion("without"))
    assert client.delete("/prompt-templates/tone").status_code == 409
    (label,) = client.get("/prompt-templates/top/labels").json()["release_labels"]
    client.delete(f"/prompt-labels/{label['release_label_id']}")
    assert client.delete("/prompt-templates/tone").status_code == 200


def test_a_refused_publication_leaves_nothing_that_is_remembered(client: TestClient, store: Store) -> None:
    published(client, "a", completion("first"))
    pairs = [{"source": "s", "external_id": "1"}]
    published(client, "b", completion("x"), external_ids=pairs)
    # refused after its version was written: its id is given to the next one
    assert refused(client, "a", completion("wrong"), external_ids=pairs)[0] == 409
    published(client, "a", completion("right"))
    assert rendered(client, "a") == "right"
    published(client, "top", completion("@@@a@@@"))
    assert rendered(client) == "right"
    with store.catalog.read() as connection:
        assert len(connection.execute(prompt_includes.select()).all()) == 1
