from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from storage.engine.schema import audit_entries
from storage.store import Store

PUBLISH = "/rest/prompt-templates"


def completion(text: str = "Say {x}", **more: Any) -> dict[str, Any]:
    return {"type": "completion", "content": [{"type": "text", "text": text}], **more}


def body_of(name: str = "greeting", template: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "prompt_template": {"prompt_name": name},
        "prompt_version": {"prompt_template": template or completion()},
        **more,
    }


def published(
    client: TestClient, name: str = "greeting", template: Any = None, **more: Any
) -> dict[str, Any]:
    answer = client.post(PUBLISH, json=body_of(name, template, **more))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_publishing_answers_every_field_and_the_next_publication_is_the_next_version(
    client: TestClient,
) -> None:
    body = {
        "prompt_template": {"prompt_name": "greeting", "tags": ["a", "b"], "workspace_id": 1},
        "prompt_version": {
            "prompt_template": completion("Hi {name}, {greeting}! {{x}} {name}"),
            "metadata": {"model": {"provider": "openai", "name": "m", "parameters": {"n": 1}}, "team": "t"},
            "commit_message": "c" * 72,
        },
        "release_labels": ["prod"],
        "external_ids": [{"source": "git", "external_id": "1"}],
    }
    first = client.post(PUBLISH, json=body)
    assert first.status_code == 201
    one = first.json()
    assert one["prompt_template"] == {
        **body["prompt_version"]["prompt_template"],  # type: ignore[index]
        "template_format": "f-string",
        "input_variables": ["name", "greeting"],
    }
    assert (one["version_number"], one["tags"], one["release_labels"]) == (1, ["a", "b"], ["prod"])
    assert one["metadata"] == body["prompt_version"]["metadata"]  # type: ignore[index]
    assert one["external_ids"] == body["external_ids"]
    assert one["commit_message"] == "c" * 72
    two = published(client)
    assert (two["id"], two["version_number"]) == (one["id"], 2)
    assert two["prompt_version_id"] != one["prompt_version_id"]
    assert two["tags"] == ["a", "b"]
    assert two["release_labels"] == []


def test_absent_and_null_tags_and_folder_keep_their_value_and_given_ones_replace(client: TestClient) -> None:
    folder = client.post("/api/public/v2/folders", json={"name": "f"}).json()["id"]
    body = body_of()
    body["prompt_template"] |= {"tags": ["a"], "folder_id": folder}
    client.post(PUBLISH, json=body)
    body["prompt_template"] |= {"tags": None, "folder_id": None}
    kept = client.post(PUBLISH, json=body).json()
    assert (kept["tags"], kept["folder_id"]) == (["a"], folder)
    body["prompt_template"] |= {"tags": []}
    assert client.post(PUBLISH, json=body).json()["tags"] == []


def test_a_body_that_repeats_everything_in_both_objects_is_read(client: TestClient) -> None:
    flat = {
        "prompt_name": "flat",
        "tags": ["t"],
        "prompt_template": completion(),
        "commit_message": "m",
        "metadata": {"model": {"name": "m"}},
        "release_labels": ["prod"],
        "external_ids": [{"source": "s", "external_id": "e"}],
        "unknown": 1,
    }
    answer = client.post(
        PUBLISH, json={"prompt_template": flat, "prompt_version": flat, "release_labels": None}
    )
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert (found["prompt_name"], found["commit_message"], found["release_labels"]) == ("flat", "m", ["prod"])
    assert found["external_ids"] == flat["external_ids"]


def test_labels_are_created_and_moved_and_keep_their_id(client: TestClient) -> None:
    published(client, release_labels=["prod", "qa"])
    before = client.get("/prompt-templates/greeting/labels").json()["release_labels"]
    second = published(client, release_labels=["prod", "prod"])
    after = client.get("/prompt-templates/greeting/labels").json()["release_labels"]
    assert [entry["release_label"] for entry in after] == ["prod", "qa"]
    assert [entry["prompt_version_number"] for entry in after] == [2, 1]
    assert [entry["release_label_id"] for entry in after] == [entry["release_label_id"] for entry in before]
    assert after[0]["prompt_version_id"] == second["prompt_version_id"]
    assert client.get("/prompt-templates/greeting", params={"label": "qa"}).json()["version_number"] == 1


@pytest.mark.parametrize("name", ["a/b c", "ünï/カ", "100% sure?", "labels", "a//b", " x "])
def test_names_with_slashes_and_spaces_work_raw_and_encoded(client: TestClient, name: str) -> None:
    one = published(client, name, release_labels=["prod"])
    for spelled in {quote(name, safe=""), quote(name, safe="/")}:
        assert client.get(f"/prompt-templates/{spelled}/labels").json()["release_labels"]
        assert client.get(f"/prompt-templates/{spelled}").json()["id"] == one["id"]
        assert client.post(f"/prompt-templates/{spelled}", json={}).json()["id"] == one["id"]


def test_an_exact_name_wins_over_an_id(client: TestClient) -> None:
    first = published(client, "first")
    named = published(client, str(first["id"]))
    assert client.get(f"/prompt-templates/{first['id']}").json()["id"] == named["id"]
    assert client.get(f"/prompt-templates/{named['id']}").json()["id"] == named["id"]


def test_a_chat_template_is_rendered_in_every_message(client: TestClient) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    template = {
        "type": "chat",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "You are {who}."}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "{q}"}, {"type": "image_url", "image_url": {}}],
            },
        ],
    }
    one = published(client, "chat", template)
    assert one["prompt_template"]["input_variables"] == ["who", "q"]
    assert one["prompt_template"]["messages"][1]["content"] == []
    wanted = {
        "input_variables": {"who": "kind", "q": {"a": 1}, "extra": 1},
        "provider": "openai",
        "model": "m",
    }
    rendered = client.post("/prompt-templates/chat", json=wanted).json()
    messages = rendered["prompt_template"]["messages"]
    assert messages[0]["content"][0]["text"] == "You are kind."
    assert messages[2]["content"] == [
        {"type": "text", "text": '{"a":1}'},
        {"type": "image_url", "image_url": {}},
    ]
    assert "extra" in rendered["warning"]
    assert (rendered["version"], rendered["llm_kwargs"]["model"]) == (1, "m")
    assert rendered["llm_kwargs"]["messages"][0]["content"][0]["text"] == "You are kind."


def test_parameters_can_be_overridden_and_each_message_names_its_language(client: TestClient) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "{{ q }}"}]}
    body = body_of("chat", {"type": "chat", "template_format": "jinja2", "messages": [message]})
    model = {"provider": "openai", "name": "m", "parameters": {"temperature": 0, "n": 1}}
    body["prompt_version"]["metadata"] = {"model": model}
    assert client.post(PUBLISH, json=body).status_code == 201
    # a client library that keeps templates fills them in itself, message by message
    wanted = {
        "model_parameter_overrides": {"temperature": 1, "seed": 7},
        "skip_input_variable_rendering": True,
    }
    answer = client.post("/prompt-templates/chat", json=wanted).json()
    assert answer["prompt_template"]["messages"] == [{**message, "template_format": "jinja2"}]
    assert answer["llm_kwargs"] == {
        "model": "m",
        "temperature": 1,
        "n": 1,
        "seed": 7,
        "messages": [message],
    }


def test_missing_variables_render_empty_with_a_warning_and_rendering_can_be_skipped(
    client: TestClient,
) -> None:
    published(client, template=completion("[{x}]"))

    def asked(body: dict[str, Any]) -> tuple[str, str | None]:
        answer = client.post("/prompt-templates/greeting", json=body).json()
        return answer["prompt_template"]["content"][0]["text"], answer["warning"]

    assert asked({"input_variables": {"x": "1"}}) == ("[1]", None)
    text, warning = asked({"input_variables": {}})
    assert text == "[]"
    assert "x" in str(warning)
    text, warning = asked({})
    assert text == "[{x}]"
    assert "x" in str(warning)
    assert asked({"input_variables": {"x": "1"}, "skip_input_variable_rendering": True})[0] == "[{x}]"
    assert client.post("/prompt-templates/greeting").status_code == 200


def test_versions_and_labels_that_do_not_exist_are_not_found(client: TestClient) -> None:
    published(client)
    for body, status in [
        ({"version": 9}, 404),
        ({"label": "prod"}, 404),
        ({"version": 1, "label": "x"}, 422),
    ]:
        assert client.post("/prompt-templates/greeting", json=body).status_code == status
    for path in ("greeting?version=9", "greeting?label=x", "nothing", "nothing/labels", "9" * 40):
        assert client.get(f"/prompt-templates/{path}").status_code == 404
    assert client.get("/prompt-templates/greeting?version=0").status_code == 422


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (completion("one\ntwo {x.y}"), "line 2, position 5"),
        (completion("{"), "line 1, position 1"),
        (completion("ok\n{{ 1 + }}", template_format="jinja2"), "text: line 2, position 8: unexpected end"),
        (
            {"type": "chat", "messages": [{"role": "user", "content": [{"type": "text", "text": "}"}]}]},
            "messages.0.content.0.text",
        ),
    ],
)
def test_what_does_not_parse_is_refused_and_nothing_is_published(
    client: TestClient, template: dict[str, Any], words: str
) -> None:
    answer = client.post(PUBLISH, json=body_of(template=template))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_config")
    assert words in answer.json()["message"]
    assert client.get("/prompt-templates/greeting").status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_template": {}},
        {"prompt_template": {"prompt_name": ""}},
        {"prompt_template": {"prompt_name": "n" * 513}},
        {"prompt_template": {"prompt_name": 5}},
        {"prompt_template": {"prompt_name": "n", "tags": "t"}},
        {"prompt_template": {"prompt_name": "n", "tags": ["t" * 513]}},
        {"prompt_template": {"prompt_name": "n", "folder_id": "1"}},
        {"prompt_version": {}},
        {"prompt_version": {"prompt_template": completion(), "commit_message": "c" * 73}},
        {"prompt_version": {"prompt_template": completion(), "metadata": "m"}},
        {"prompt_version": {"prompt_template": completion(template_format="mustache")}},
        {"prompt_version": {"prompt_template": {"type": "poem"}}},
        {"prompt_version": {"prompt_template": {"type": "completion", "content": "plain"}}},
        {"prompt_version": {"prompt_template": {"type": "completion", "content": [{"type": "text"}]}}},
        {
            "prompt_version": {
                "prompt_template": {"type": "chat", "messages": [{"role": "u", "content": "s"}]}
            }
        },
        {
            "prompt_version": {
                "prompt_template": {"type": "chat", "messages": [{"role": "u", "content": None}]}
            }
        },
        {"prompt_version": {"prompt_template": completion("x" * 1_048_577)}},
        {"release_labels": [""]},
        {"release_labels": ["l" * 513]},
        {"external_ids": [{"source": "s" * 129, "external_id": "1"}]},
        {"external_ids": [{"source": "s", "external_id": "1" * 513}]},
        {"external_ids": [{"source": "s"}]},
    ],
)
def test_wrong_shapes_are_422_and_name_the_place(client: TestClient, change: dict[str, Any]) -> None:
    answer = client.post(PUBLISH, json=body_of("n") | change)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"] == "validation_error"
    assert answer.json()["detail"][0]["loc"][0] == "body"


def test_the_longest_values_are_taken(client: TestClient) -> None:
    longest = published(client, "n" * 512, release_labels=["l" * 512])
    assert longest["release_labels"] == ["l" * 512]


def test_an_external_id_names_one_prompt(client: TestClient) -> None:
    pairs = [{"source": "s", "external_id": "1"}]
    one = published(client, "one", external_ids=pairs)
    assert published(client, "one", external_ids=[*pairs, *pairs])["external_ids"] == pairs
    assert published(client, "one")["external_ids"] == pairs
    refused = client.post(PUBLISH, json=body_of("two", external_ids=pairs))
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert str(one["id"]) in refused.json()["message"]
    assert client.get("/prompt-templates/two").status_code == 404


def test_unknown_folders_and_other_workspaces_are_refused(client: TestClient, foreign_key: str) -> None:
    one = published(client)
    body = body_of("n")
    body["prompt_template"]["folder_id"] = 77
    assert client.post(PUBLISH, json=body).status_code == 404
    body["prompt_template"] = {"prompt_name": "n", "workspace_id": 2}
    refused = client.post(PUBLISH, json=body)
    assert (refused.status_code, refused.json()["message"]) == (400, "Invalid workspace_id")
    stranger = {"X-API-KEY": foreign_key}
    for path in ("greeting", str(one["id"]), "greeting/labels"):
        assert client.get(f"/prompt-templates/{path}", headers=stranger).status_code == 404
    # an unknown prompt is 404 before the body is looked at
    assert client.post("/prompt-templates/greeting", content=b"{", headers=stranger).status_code == 404
    assert client.get("/prompt-templates", headers=stranger).json()["items"] == []


def test_the_list_filters_and_pages(client: TestClient) -> None:
    for number in range(5):
        body = body_of(f"Team/p{number}")
        body["prompt_template"]["tags"] = ["even" if number % 2 == 0 else "odd", 'a", "b']
        body["release_labels"] = ["prod"] if number == 1 else []
        client.post(PUBLISH, json=body)
    published(client, "Team/p1")

    def names(**query: Any) -> list[str]:
        page = client.get("/prompt-templates", params=query).json()
        return [item["prompt_name"][-2:] for item in page["items"]]

    assert names() == ["p4", "p3", "p2", "p1", "p0"]
    assert names(per_page=2, page=2) == ["p2", "p1"]
    assert names(per_page=2, page=9) == []
    assert names(tags=["even", 'a", "b']) == ["p4", "p2", "p0"]
    assert names(tags=", ") == []
    assert names(name="TEAM/P3") == ["p3"]
    assert names(name="%") == []
    labelled = client.get("/prompt-templates", params={"label": "prod"}).json()
    assert [(i["prompt_name"], i["version_number"]) for i in labelled["items"]] == [("Team/p1", 1)]
    assert (labelled["total"], labelled["pages"]) == (1, 1)
    assert client.get("/prompt-templates", params={"per_page": 101}).status_code == 422


def test_every_publication_leaves_an_audit_entry_without_content(client: TestClient, store: Store) -> None:
    published(client, template=completion("secret words"), release_labels=["prod"])
    published(client)
    with store.catalog.read() as connection:
        entries = connection.execute(sa.select(audit_entries).order_by(audit_entries.c.id)).mappings().all()
    ours = [entry for entry in entries if entry["kind"] == "prompt"]
    assert [entry["action"] for entry in ours] == ["create", "update"]
    assert ours[0]["details"] == {"name": "greeting", "version_number": 1, "release_labels": ["prod"]}


def test_numbers_and_text_that_cannot_be_given_back_are_refused(client: TestClient) -> None:
    json_type = {"content-type": "application/json"}
    for broken in (
        b"{",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
        b"[" * 500 + b"]" * 500,
        b'"\xff"',
    ):
        answer = client.post(PUBLISH, content=broken, headers=json_type)
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    kept = published(client, "kept", completion("nul \x00 \U0001f600", custom=[1.5, None, {"k": True}]))
    assert kept["prompt_template"]["content"][0]["text"] == "nul \x00 \U0001f600"
    assert kept["prompt_template"]["custom"] == [1.5, None, {"k": True}]
