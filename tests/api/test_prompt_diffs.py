"""What changed between two versions, over HTTP."""

import time
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.test_templates import completion, published


def message(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts], **more}


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "chat", "messages": list(messages), **more}


def diff(client: TestClient, name: str = "greeting", **query: Any) -> dict[str, Any]:
    answer = client.get(f"/prompt-templates/{name}/diff", params={"from": 1} | query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_texts_are_compared_by_line_and_variables_and_labels_by_name(client: TestClient) -> None:
    published(client, template=completion("one\ntwo {a}\nthree"), release_labels=["prod"])
    published(client, template=completion("one\n2 {b}\nthree\nfour"), release_labels=["qa"])
    found = diff(client, to=2)
    assert (found["from"]["version_number"], found["to"]["version_number"]) == (1, 2)
    assert found["identical"] is False
    assert found["input_variables"] == {"added": ["b"], "removed": ["a"]}
    assert found["release_labels"] == {"added": ["qa"], "removed": ["prod"]}
    (changed,) = found["messages"]
    (block,) = changed["blocks"]
    assert (changed["role"], block["op"], block["fields"]) == (None, "changed", [])
    assert block["text"]["opcodes"] == [
        ["equal", 0, 1, 0, 1],
        ["replace", 1, 2, 1, 2],
        ["equal", 2, 3, 2, 3],
        ["insert", 3, 3, 3, 4],
    ]
    assert block["text"]["unified"] == "@@ -1,3 +1,4 @@\n one\n-two {a}\n+2 {b}\n three\n+four"


def test_messages_are_matched_whole_and_then_in_their_order(client: TestClient) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    published(client, template=chat(message("system", "s"), message("user", "a", "b"), message("user", "z")))
    second = chat(
        message("system", "s"),
        message("system", "new"),
        message("user", "a", "c"),
        message("assistant", "z", tool_calls=[call]),
        tools=[{"type": "function", "function": {"name": "f"}}],
    )
    published(client, template=second)
    found = diff(client)
    assert [(m["op"], m["from_index"], m["to_index"]) for m in found["messages"]] == [
        ("changed", 1, 1),
        ("changed", 2, 2),
        ("added", None, 3),
    ]
    assert found["messages"][2]["to"]["tool_calls"] == [call]
    assert found["messages"][0]["fields"] == [
        {"path": "role", "op": "changed", "from": "user", "to": "system"}
    ]
    assert [block["op"] for block in found["messages"][0]["blocks"]] == ["changed", "removed"]
    assert [(field["path"], field["op"]) for field in found["settings"]] == [("tools", "added")]


def test_metadata_and_settings_are_compared_key_by_key(client: TestClient) -> None:
    def publish(model: dict[str, Any] | None, template: Any) -> None:
        body = {
            "prompt_template": {"prompt_name": "greeting"},
            "prompt_version": {"prompt_template": template},
        }
        body["prompt_version"] |= {"metadata": None if model is None else {"model": model}}
        assert client.post("/rest/prompt-templates", json=body).status_code == 201

    publish({"name": "m", "parameters": {"n": 1, "stop": ["a"]}}, completion("x"))
    publish({"name": "m", "parameters": {"n": True, "top_p": 1}}, completion("x", template_format="jinja2"))
    publish(None, completion("x", template_format="jinja2"))
    found = diff(client, to=2)
    assert found["metadata"] == [
        {"path": "model.parameters.n", "op": "changed", "from": 1, "to": True},
        {"path": "model.parameters.stop", "op": "removed", "from": ["a"], "to": None},
        {"path": "model.parameters.top_p", "op": "added", "from": None, "to": 1},
    ]
    assert found["settings"] == [
        {"path": "template_format", "op": "changed", "from": "f-string", "to": "jinja2"}
    ]
    assert found["messages"] == []
    assert [field["path"] for field in diff(client, **{"from": 2})["metadata"]] == ["model"]


def test_a_completion_and_a_chat_compare(client: TestClient) -> None:
    published(client, template=completion("hello"))
    published(client, template=chat(message("user", "hello")))
    found = diff(client)
    assert [field["path"] for field in found["settings"]] == ["type"]
    (changed,) = found["messages"]
    assert (changed["blocks"], [field["path"] for field in changed["fields"]]) == ([], ["role"])


@pytest.mark.parametrize("name", ["a/b c", "a%2Fb%20c"])
def test_versions_are_named_by_number_or_label_with_slashes_raw_or_encoded(
    client: TestClient, name: str
) -> None:
    published(client, "a/b c", completion("1"), release_labels=["prod/eu", "7"])
    published(client, "a/b c", completion("2"))
    published(client, "a/b c", completion("2"), release_labels=["qa"])
    for query, numbers in [
        ({"from": "prod/eu"}, (1, 3)),
        ({"from": "label:7", "to": "2"}, (1, 2)),
        ({"from": "qa", "to": "label:prod/eu"}, (3, 1)),
        ({"from": 2, "to": 3}, (2, 3)),
    ]:
        found = diff(client, name, **query)
        assert (found["from"]["version_number"], found["to"]["version_number"]) == numbers
    assert found["identical"] is True
    assert (found["messages"], found["settings"], found["metadata"]) == ([], [], [])
    assert found["release_labels"] == {"added": ["qa"], "removed": []}


def test_unknown_versions_are_404_and_none_at_all_422(client: TestClient) -> None:
    published(client)
    for query, status in [
        ({"from": 9}, 404),
        ({"from": 0}, 404),
        ({"from": "9" * 40}, 404),
        ({"from": 1, "to": 9}, 404),
        ({"from": 1, "to": "nothing"}, 404),
        ({"from": "7"}, 404),
        ({}, 422),
        ({"from": ""}, 422),
        ({"from": "x" * 601}, 422),
    ]:
        answer = client.get("/prompt-templates/greeting/diff", params=query)
        assert answer.status_code == status, (query, answer.text)
    assert client.get("/prompt-templates/none/diff", params={"from": 1}).status_code == 404


def test_texts_of_a_megabyte_that_have_nothing_in_common_compare_in_seconds(client: TestClient) -> None:
    published(client, template=completion("a\nb\n" * 170_000))
    published(client, template=completion("b\na\na\n" * 110_000))
    published(client, template=chat(*(message("user", "x\ny\n" * 150) for _ in range(200))))
    published(client, template=chat(*(message("user", "y\nx\nx\n" * 100) for _ in range(200))))
    started = time.process_time()
    found = diff(client, to=2)
    assert found["messages"][0]["blocks"][0]["text"]["opcodes"]
    assert len(diff(client, to=4, **{"from": 3})["messages"]) == 200
    assert time.process_time() - started < 20
