"""Columns of a model that is built in: prompts, formats, assertions, failures, results that are shared."""

from dataclasses import replace
from typing import Any

import pytest

from pipelines.columns.protocol import RunContext
from pipelines.columns.registry import RUNNERS
from pipelines.recalculation import recalculate
from storage.domain.errors import InvalidConfig
from storage.domain.keys import Principal
from storage.domain.prompts import Publication
from storage.operations import settle_ended_run
from storage.request_logs import get_request_log
from storage.store import Store
from storage.templates import publish
from tests.recalculating import Bench

ECHO = {"provider": "stub", "model": "echo"}


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    return Bench(store, who, ["Question", "Notes"], [["one", "a b"], ["two", ""], ["one", "c"]])


def answered(bench: Bench, title: str, kind: str, **config: Any) -> list[Any]:
    bench.run(bench.add(title, kind, **config).operation)
    return bench.values(title)


def test_a_prompt_of_the_column_is_filled_and_answered(bench: Bench) -> None:
    assert answered(bench, "A", "llm", prompt="Q: {Question}", engine=ECHO) == ["Q: one", "Q: two", "Q: one"]
    first, second, third = bench.cells("A")
    assert first.state.request_metrics is not None
    assert third.state.request_metrics is not None
    assert first.state.request_metrics["request_count"] == 1
    # equal cells cost one call
    assert (first.state.cached, second.state.cached, third.state.cached) == (False, False, True)
    assert third.state.request_metrics["request_count"] == 0
    assert third.state.request_metrics["request_ids"] == first.state.request_metrics["request_ids"]


def test_a_prompt_without_variables_is_asked_once_and_answers_every_row(bench: Bench) -> None:
    assert answered(bench, "A", "llm", prompt="Hello", engine=ECHO) == ["Hello"] * 3
    template = {"prompt_template": {"type": "completion", "content": [{"type": "text", "text": "Hello"}]}}
    assert answered(bench, "B", "prompt_template", inline_template=template, engine=ECHO) == ["Hello"] * 3
    assert [cell.state.cached for cell in bench.cells("A")] == [False, True, True]


def test_each_call_is_a_logged_request(bench: Bench, store: Store, who: Principal) -> None:
    answered(bench, "A", "llm", system="Be kind", prompt="{Question} {Notes}", engine=ECHO)
    cell = bench.cells("A")[1]
    assert cell.state.request_metrics is not None
    log = get_request_log(store, who, cell.state.request_metrics["request_ids"][0])
    assert log["metadata"]["source"] == "sheet"
    assert log["metadata"]["execution_id"] == cell.state.execution_id
    assert log["prompt_input_variables"] == {"Question": "two", "Notes": ""}
    assert (log["status"], log["error_type"]) == ("WARNING", "VARIABLE_MISSING_OR_EMPTY")
    assert [message["role"] for message in log["input"]["messages"]] == ["system", "user"]
    assert log["output"]["messages"][0]["content"][0]["text"] == "two"


def test_an_answer_by_a_schema_is_a_json_value(bench: Bench) -> None:
    schema = {
        "type": "object",
        "required": ["city", "sure"],
        "properties": {"city": {"type": "string"}, "sure": {"type": "boolean"}},
    }
    values = answered(bench, "A", "llm", prompt="{Question}", engine=ECHO, response_format=schema)
    assert values[1] == {"city": "two", "sure": True}


def test_an_answer_that_does_not_fit_is_asked_for_once_more_then_fails(bench: Bench) -> None:
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    prompt = "{Question} [[stub:answer no json]]"
    answered(bench, "A", "llm", prompt=prompt, engine=ECHO, response_format=schema)
    # the stub echoes the request to mend, made to fit
    assert bench.statuses("A") == ["completed"] * 3
    metrics = bench.cells("A")[0].state.request_metrics
    assert metrics is not None
    assert (metrics["request_count"], len(metrics["request_ids"])) == (2, 2)


def test_an_assertion_gives_verdicts(bench: Bench) -> None:
    one = answered(bench, "One", "llm", source="Question", prompt="It is a number", engine=ECHO)
    assert one == [True, True, True]
    several = answered(
        bench, "Several", "llm", source="Question", prompt='["It is a number", "It is short"]', engine=ECHO
    )
    assert several[0] == {"It is a number": True, "It is short": True}


@pytest.mark.parametrize(
    ("mark", "error"),
    [
        ("quota", "PROVIDER_QUOTA_LIMIT"),
        ("auth", "PROVIDER_AUTH_ERROR"),
        ("bad_request", "PROVIDER_ERROR"),
    ],
)
def test_failures_are_errors_of_their_cells(
    bench: Bench, store: Store, who: Principal, mark: str, error: str
) -> None:
    bench.edit("Notes", 1, f"[[stub:{mark}]]")
    answered(bench, "A", "llm", prompt="{Question} {Notes}", engine=ECHO)
    assert bench.statuses("A") == ["completed", "failed", "completed"]
    assert bench.errors("A")[1] == error
    metrics = bench.cells("A")[1].state.request_metrics
    assert metrics is not None
    log = get_request_log(store, who, metrics["request_ids"][0])
    assert (log["status"], log["error_type"]) == ("ERROR", error)


def test_what_fails_at_first_is_tried_again(bench: Bench) -> None:
    bench.edit("Notes", 1, "[[stub:rate_limit 2]]")
    values = answered(bench, "A", "llm", prompt="{Question} {Notes}", engine=ECHO)
    assert values[1] == "two"


def test_a_missing_key_names_the_variable(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    answered(bench, "A", "llm", prompt="{Question}", engine={"provider": "openai", "model": "gpt-4o-mini"})
    assert bench.errors("A") == ["PROVIDER_AUTH_ERROR"] * 3
    assert "OPENAI_API_KEY" in (bench.cells("A")[0].state.error_message or "")
    answered(bench, "B", "llm", prompt="{Question}", engine={"provider": "nobody", "model": "x"})
    assert bench.errors("B") == ["engine_unavailable"] * 3


CHAT = {
    "type": "chat",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be {tone}"}]},
        {"role": "user", "content": [{"type": "text", "text": "{q}?"}]},
    ],
}
MODEL = {"model": {"provider": "stub", "name": "echo", "parameters": {}}}


def test_a_registered_prompt_is_used_by_label(bench: Bench, store: Store, who: Principal) -> None:
    publish(store, who, Publication("ask", CHAT, metadata=MODEL, release_labels=("prod",)))
    named = {"template": {"name": "ask", "label": "prod"}}
    mapped = {"prompt_template_variable_mappings": {"q": "Question", "tone": "Notes"}}
    assert answered(bench, "A", "prompt_template", **named, **mapped) == ["one?", "two?", "one?"]
    metrics = bench.cells("A")[0].state.request_metrics
    assert metrics is not None
    log = get_request_log(store, who, metrics["request_ids"][0])
    assert (log["prompt_name"], log["prompt_version_number"]) == ("ask", 1)
    assert log["prompt_input_variables"] == {"tone": "a b", "q": "one"}


def test_a_new_version_under_the_label_is_computed_anew(bench: Bench, store: Store, who: Principal) -> None:
    publish(store, who, Publication("ask", CHAT, metadata=MODEL))
    mapped = {"prompt_template_variable_mappings": {"q": "Question"}}
    answered(bench, "A", "prompt_template", template={"name": "ask"}, **mapped)
    same = bench.recalculate(statuses=())
    assert (same.cached_count, same.completed_count) == (3, 3)
    changed = {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": "{q}!"}]}]}
    publish(store, who, Publication("ask", changed, metadata=MODEL))
    bench.recalculate(statuses=())
    assert bench.values("A") == ["one!", "two!", "one!"]


def test_inline_prompts_in_both_languages(bench: Bench) -> None:
    text = [{"type": "text", "text": "{% if q == 'one' %}1{% else %}{{ q }}{% endif %}"}]
    jinja = {"prompt_template": {"type": "completion", "template_format": "jinja2", "content": text}}
    mapped = {"prompt_template_variable_mappings": {"q": "Question"}}
    values = answered(bench, "A", "prompt_template", inline_template=jinja, engine=ECHO, **mapped)
    assert values == ["1", "two", "1"]
    inline = {"prompt_template": CHAT}
    only = answered(
        bench, "B", "prompt_template", inline_template=inline, return_template_only=True, **mapped
    )
    assert only[0][1]["content"][0]["text"] == "one?"


def test_an_unknown_prompt_fails_the_cells(bench: Bench) -> None:
    answered(bench, "A", "prompt_template", template={"name": "nobody"})
    assert bench.errors("A") == ["not_found"] * 3


def test_other_sheets_are_answered_from_what_is_known(bench: Bench, store: Store, who: Principal) -> None:
    answered(bench, "A", "llm", prompt="{Question}", engine=ECHO)
    other = Bench(store, who, ["Question"], [["two"], ["three"]])
    other.run(other.add("Again", "llm", prompt="{Question}", engine=ECHO).operation)
    first, second = other.cells("Again")
    assert (first.value, first.state.cached, second.state.cached) == ("two", True, False)
    assert first.state.request_metrics is not None
    assert first.state.request_metrics["request_count"] == 0
    assert (
        first.state.request_metrics["request_ids"] == bench.cells("A")[1].state.request_metrics["request_ids"]
    )  # type: ignore[index]


def test_forced_and_hot_columns_ask_again(bench: Bench) -> None:
    answered(bench, "A", "llm", prompt="{Question}", engine=ECHO)
    forced = bench.recalculate(statuses=(), force=True)
    # equal cells of one operation are asked once, and nothing of before counts
    assert (forced.completed_count, forced.cached_count) == (3, 1)
    hot = {**ECHO, "parameters": {"temperature": 0.7}}
    answered(bench, "Hot", "llm", prompt="{Question}", engine=hot)
    assert [cell.state.cached for cell in bench.cells("Hot")] == [False] * 3
    assert set(RUNNERS) >= {"llm", "prompt_template"}


def test_marks_and_schemas_that_make_no_sense_fail_cells_and_no_run(bench: Bench) -> None:
    bench.edit("Notes", 1, "[[stub:slow soon]]")
    bench.edit("Notes", 2, "[[stub:nothing]]")
    assert answered(bench, "A", "llm", prompt="{Question} {Notes}", engine=ECHO)[2] == "one"
    odd = {"type": "json_schema", "json_schema": {"schema": {"type": "array", "minItems": "many"}}}
    parameters = {"response_format": odd}
    text = {"prompt_template": {"type": "completion", "content": [{"type": "text", "text": "{q}"}]}}
    mapped = {"prompt_template_variable_mappings": {"q": "Question"}}
    engine = {**ECHO, "parameters": parameters}
    answered(bench, "B", "prompt_template", inline_template=text, engine=engine, **mapped)
    assert bench.errors("B") == ["PROVIDER_ERROR"] * 3


def test_a_response_format_that_is_no_schema_is_not_saved(bench: Bench) -> None:
    for bad, why in (
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}}, "not present"),
        ({"type": "json_schema", "json_schema": {"schema": {"type": "strin"}}}, "strin"),
        ({"type": "string", "pattern": "(?=x)"}, "regex"),
    ):
        with pytest.raises(InvalidConfig, match=f"config.response_format: is no JSON schema: .*{why}"):
            bench.add("C", "llm", prompt="{Question}", engine=ECHO, response_format=bad)


def test_a_schema_that_asks_for_a_million_values_fails_its_cells(bench: Bench) -> None:
    wide: dict[str, Any] = {"type": "integer"}
    for _ in range(5):
        wide = {"type": "array", "minItems": 100, "items": wide}
    answered(bench, "A", "llm", prompt="{Question}", engine=ECHO, response_format=wide)
    assert bench.errors("A") == ["PROVIDER_ERROR"] * 3


def test_a_schema_may_refer_to_its_own_parts(bench: Bench) -> None:
    tree = {
        "$ref": "#/$defs/tree",
        "$defs": {
            "tree": {"type": "object", "properties": {"l": {"$ref": "#/$defs/tree"}}, "required": ["v"]}
        },
    }
    bench.edit("Question", 0, '[[stub:answer {"v": 1, "l": {"v": 2}}]]')
    bench.edit("Question", 1, '[[stub:answer {"v": 1, "l": {}}]]')
    answered(bench, "A", "llm", prompt="{Question}", engine=ECHO, response_format=tree)
    assert bench.values("A")[0] == {"v": 1, "l": {"v": 2}}
    # neither fits the answer to the second, also mended, nor that to the third, which is a word
    assert bench.statuses("A") == ["completed", "failed", "failed"]
    assert bench.errors("A")[1:] == ["PROVIDER_PARTIAL_RESPONSE"] * 2
    assert "it does not fit the schema" in (bench.cells("A")[1].state.error_message or "")


@pytest.mark.slow
def test_a_schema_that_takes_for_ever_holds_no_run(bench: Bench) -> None:
    parts: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(40)
    }
    endless = {"$ref": "#/$defs/a0", "$defs": {**parts, "a40": {"type": "string"}}}
    rows = [[f'[[stub:answer "{n}"]]'] for n in range(9)]
    narrow = replace(bench.store, settings=replace(bench.store.settings, model_calls=1))
    sheet = Bench(narrow, bench.who, ["Question"], rows)
    answered(sheet, "A", "llm", prompt="{Question}", engine=ECHO, response_format=endless)
    errors = sheet.errors("A")
    # those that were under way together may all meet it
    assert 3 <= errors.count("timeout") <= 4
    assert errors[4:] == ["not_tried"] * 5
    # what could not be judged is not asked for: no call was made
    assert sheet.cells("A")[8].state.request_metrics["request_count"] == 0  # type: ignore[index]


def test_a_later_attempt_takes_the_version_that_the_first_one_found(
    bench: Bench, store: Store, who: Principal
) -> None:
    publish(store, who, Publication("ask", CHAT, metadata=MODEL, release_labels=("prod",)))
    mapped = {"prompt_template_variable_mappings": {"q": "Question"}}
    template = {"name": "ask", "label": "prod"}
    operation = bench.add("A", "prompt_template", template=template, **mapped).operation
    assert operation is not None

    def dies(context: RunContext) -> Any:
        raise RuntimeError

    broken = {"prompt_template": replace(RUNNERS["prompt_template"], open=dies)}
    with pytest.raises(RuntimeError):
        recalculate(store, operation.no, 1, "run-1", lambda _: None, broken)
    settle_ended_run(store, operation.no, 1, "run-1", cancelled=False)
    changed = {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": "{q}!"}]}]}
    publish(store, who, Publication("ask", changed, metadata=MODEL, release_labels=("prod",)))
    recalculate(store, operation.no, 2, "run-2", lambda _: None, RUNNERS)
    assert bench.values("A") == ["one?", "two?", "one?"]
    bench.recalculate(statuses=())
    assert bench.values("A") == ["one!", "two!", "one!"]


def test_a_budget_of_nothing_lets_free_calls_through_and_no_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(bench, "Free", "llm", prompt="{Question}", engine=ECHO)
    bench.change("Free", config={"prompt": "{Question}!", "engine": ECHO})
    free = bench.recalculate(budget=0)
    assert (free.operation.status, free.completed_count) == ("completed", 3)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    # nobody listens there: a call would fail its cell
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    engine = {"provider": "openai", "model": "gpt-4o-mini"}
    bench.change("Free", config={"prompt": "{Question}?", "engine": engine})
    dear = bench.recalculate(budget=0)
    assert (dear.operation.status, dear.completed_count, dear.failed_count) == ("cancelled", 0, 0)
    assert bench.statuses("Free") == ["stale"] * 3


def test_the_stub_embeds_texts(bench: Bench) -> None:
    config = {"sources": ["Question", "Notes"], "metric": "cosine_similarity"}
    bench.edit("Notes", 1, "Two of")
    words = {"provider": "stub", "model": "words"}
    values = answered(bench, "Like", "score", embedding=words, **config)
    assert values == [0.0, pytest.approx(2**-0.5), 0.0]
    answered(bench, "None", "score", embedding={"provider": "stub", "model": "echo"}, **config)
    assert bench.errors("None") == ["PROVIDER_ERROR"] * 3


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ({"content": "Hello {q}"}, "content: must be an array or a null"),
        ({"messages": [{"role": "user", "content": "hi"}]}, r"messages\[0\].content: must be an array"),
        ({"messages": [1]}, r"messages\[0\]: must be an object"),
        ({"messages": [{"content": []}]}, r"messages\[0\].role: is required"),
        ({"content": ["x"]}, r"content\[0\]: must be an object"),
        ({"content": [{"type": "text"}]}, r"content\[0\].text: is required"),
        ({"content": [{"type": "text", "text": 5}]}, r"content\[0\].text: must be a string"),
        ({"type": "xyz"}, "type: must be one of completion, chat"),
        ({"template_format": "mustache"}, "template_format: must be one of f-string, jinja2"),
        ({"content": [{"type": "text", "text": "{a"}]}, "content.0.text: line 1, position 1"),
        (
            {"template_format": "jinja2", "content": [{"type": "text", "text": "{% if %}"}]},
            "content.0.text: line 1, position 7",
        ),
        ({"content": [{"type": "text", "text": "@@@none@@@"}]}, ": No snippet is found for @@@none@@@"),
    ],
)
def test_a_prompt_that_is_none_is_not_saved(bench: Bench, prompt: Any, words: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"^config.inline_template.prompt_template\.?{words}"):
        bench.add("A", "prompt_template", inline_template={"prompt_template": prompt}, engine=ECHO)


def test_parameters_of_the_model_are_objects(bench: Bench) -> None:
    for metadata in ({"model": "x"}, {"model": {"name": 5}}, {"model": {"parameters": []}}):
        inline = {"prompt_template": {"content": []}, "metadata": metadata}
        with pytest.raises(InvalidConfig, match=r"config\.inline_template\.metadata\.model"):
            bench.add("A", "prompt_template", inline_template=inline, engine=ECHO)


def test_a_parameter_may_be_called_as_a_key_of_another_call(bench: Bench) -> None:
    engine = {**ECHO, "parameters": {"input": "x", "prompt": "y", "model": "z", "stream": True}}
    assert answered(bench, "A", "llm", prompt="{Question}", engine=engine) == ["one", "two", "one"]


def test_statements_may_stand_in_another_column(store: Store, who: Principal) -> None:
    statements = ["It is short", '["It is short", "It is long"]', "", "[]", '["", 1]']
    rows = [[f"text {at}", statement] for at, statement in enumerate(statements)]
    bench = Bench(store, who, ["Q", "S"], rows)
    answered(bench, "A", "llm", source="Q", prompt_source="S", system="Be strict", engine=ECHO)
    assert bench.values("A") == [True, {"It is short": True, "It is long": True}, None, None, None]
    assert bench.errors("A") == [None, None, *["invalid_config"] * 3]
    metrics = bench.cells("A")[1].state.request_metrics
    assert metrics is not None
    system, asked = get_request_log(store, who, metrics["request_ids"][0])["input"]["messages"]
    assert system["content"][0]["text"].startswith("Be strict")
    assert asked["content"][0]["text"].endswith("1. It is short\n2. It is long")
    # nobody is asked about nothing
    assert bench.cells("A")[2].state.request_metrics is None


JINJA2 = {"template_format": "jinja2"}


def test_prompts_are_filled_without_a_model(store: Store, who: Principal) -> None:
    rows = [['say "hi"\n', 1], ["", 2], ["\ufdd01\ufdd0 {{ n }}", 0]]
    bench = Bench(store, who, ["Q", "N"], rows)
    picture = {"type": "image_url", "image_url": {"url": "http://x/{q}"}}
    said = [{"type": "text", "text": "{q}: {n}"}, picture, {"type": "text", "text": "{missing}!"}]
    messages = [
        {
            "role": "system",
            "content": [{"type": "text", "text": "{{ 6 // n }}"}],
            "template_format": "jinja2",
        },
        {"role": "user", "content": said},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "{q}"}]},
    ]
    mapped = {"prompt_template_variable_mappings": {"q": "Q", "n": "N"}, "return_template_only": True}
    inline = {"prompt_template": {"type": "chat", "messages": messages}}
    found = answered(bench, "A", "prompt_template", inline_template=inline, **mapped)
    assert bench.errors("A") == [None, None, "TEMPLATE_RENDER_ERROR"]
    system, user, assistant = found[0]
    assert system == {"role": "system", "content": [{"type": "text", "text": "6"}]}
    texts = [{"type": "text", "text": 'say "hi"\n: 1'}, picture, {"type": "text", "text": "!"}]
    assert user == {"role": "user", "content": texts}
    assert assistant["tool_calls"] == [{"id": "{q}"}]
    plain = {"prompt_template": {"content": said}}
    texts_of = answered(bench, "B", "prompt_template", inline_template=plain, **mapped)
    assert texts_of == ['say "hi"\n: 1!', ": 2!", "\ufdd01\ufdd0 {{ n }}: 0!"]
    for title, prompt in (("C", {"content": []}), ("D", {"type": "chat", "messages": []})):
        nothing = answered(
            bench, title, "prompt_template", inline_template={"prompt_template": prompt}, **mapped
        )
        assert nothing == [[] if "messages" in prompt else ""] * 3
    # no model is named, and none is asked
    assert bench.cells("A")[0].state.request_metrics is None
