"""Random logs and random filters, full of what trips SQL, patterns and JSON."""

from typing import Any

from hypothesis import strategies as st

from storage.domain.filters import FIELDS, OPERATORS
from tests.logs import stored_fields

# ruff: noqa: RUF001 - characters that look like others are the point
NASTY = (
    "", "a", "A", "ä", "Ä", "ß", "ẞ", "ſ", "σ", "ς", "İ", "ı", "K", "k", "'", '"', "''", "\\", "%", "_",
    "%a_",
    ".", ".*", "a.b", "a/b", "a~1b", "[", "]", "(?i)", "\\d", "^$", "$.a", "$", "{}", "?", ";--",
    "\n", "\n\n",
    "\t", " ", "\x00", "\x00a", "日本", "🕷", "e\u0301", "é", "0", "1", "01", "1.0", "1e3", "null", "true",
    "user", "[user]: ",
    "two words", "Two-Words", "x" * 300, '{"a": 1}', '{"a": {"b": [1, "A", null]}}',
    '{"a.b": 2, "": ""}', " {} ", '{"a": "\\ud800"}', '{"a": NaN}', "[1]", '{"a": 1.50}',
)  # fmt: skip
WORDS = st.sampled_from(NASTY)
TEXTS = st.one_of(
    WORDS,
    st.lists(WORDS, max_size=4).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs", "Cn", "Co"], max_codepoint=0x2FFF), max_size=12),
)
NAMES = st.sampled_from(["", "a", "A", "b", "a.b", "a/b", "a~b", "it's", '"q"', "$", "ключ", "x\x00y"])
BLOCKS = st.lists(
    st.one_of(
        TEXTS.map(lambda text: {"type": "text", "text": text}),
        TEXTS.map(lambda url: {"type": "image", "url": url, "text": {"not": "text"}}),
        NAMES.map(lambda name: {"type": "tool_use", "name": name, "input": {"a": [1, {"b": "x"}]}}),
    ),
    max_size=2,
)
CALLS = st.lists(
    st.builds(
        lambda name, arguments: {"id": "c", "function": {"name": name, "arguments": arguments}},
        NAMES,
        WORDS,
    ),
    max_size=2,
)  # fmt: skip


def _message(role: str, content: list[Any], calls: list[Any] | None) -> dict[str, Any]:
    return {"role": role, "content": content} | ({} if calls is None else {"tool_calls": calls})


MESSAGES = st.builds(_message, st.sampled_from(["user", "assistant", "sy's"]), BLOCKS, st.none() | CALLS)
SIDES = st.one_of(
    st.lists(MESSAGES, max_size=2).map(lambda messages: {"type": "chat", "messages": messages}),
    BLOCKS.map(lambda content: {"type": "completion", "content": content}),
)
# numbers that JSON may spell in several ways
SPELLED = (1.0, -3.0, 1e15, 1e16, 1e22, 1e-7, 1.5e-5, 1e300)
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 2000), st.sampled_from([0.5, 1.25, -2.5, *SPELLED]), TEXTS,
    st.lists(TEXTS, max_size=2), st.dictionaries(NAMES, TEXTS, max_size=2),
)  # fmt: skip
STARTS = st.sampled_from(
    [0, 1_714_521_600_000_000, 1_714_521_599_999_999, 1_714_607_999_999_999, 1_714_608_000_000_000]
)


@st.composite
def logs(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a log as they are stored."""
    start = draw(STARTS)
    prompt_id = draw(st.none() | st.integers(1, 2))
    return stored_fields(
        provider=draw(TEXTS),
        model=draw(TEXTS),
        status=draw(st.sampled_from(["SUCCESS", "WARNING", "ERROR"])),
        error_type=draw(st.none() | st.just("UNKNOWN_ERROR")),
        function_name=draw(TEXTS),
        input=draw(SIDES),
        output=draw(SIDES),
        request_start_time=start,
        request_end_time=start + draw(st.sampled_from([0, 1, 999, 1_000_000])),
        tags=draw(st.lists(TEXTS, max_size=3)),
        metadata=draw(st.dictionaries(NAMES, TEXTS, max_size=3)),
        prompt_input_variables=draw(st.dictionaries(NAMES, VALUES, max_size=3)),
        prompt_id=prompt_id,
        prompt_name=None if prompt_id is None else draw(WORDS),
        prompt_version_number=draw(st.none() | st.integers(1, 2)),
        input_tokens=draw(st.sampled_from([0, 1, 3, 2**53 + 1, 2**63 - 1])),
        output_tokens=draw(st.integers(0, 3)),
        price=draw(st.sampled_from([0.0, 0.1, 1.0, 1e-9, 3.5])),
    )


NUMBERS = st.one_of(
    st.integers(-2, 4),
    st.sampled_from([0.1, 3.5, 2**53 + 1, 2**63 - 1, 1e-9, 999, 0.001, "1", " 2 ", "3.5", "1e0"]),
)
TIMES = st.sampled_from(
    [
        "2024-05-01", "2024-05-02", "1970-01-01", "2024-05-01T00:00:00", "2024-04-30T23:59:59.999999Z",
        "2024-05-01T02:00:00+02:00", 0, 1_714_521_600, 1_714_608_000_000,
    ]
)  # fmt: skip


@st.composite
def filters(draw: st.DrawFn) -> dict[str, Any]:
    """A filter as a client writes it; it is valid."""
    field = draw(st.sampled_from(sorted(FIELDS)))
    kind = FIELDS[field]
    operator = draw(st.sampled_from(OPERATORS[kind]))
    made: dict[str, Any] = {"field": field, "operator": operator}
    if kind == "nested" and (operator not in {"is_empty", "is_not_empty"} or draw(st.booleans())):
        made["nested_key"] = draw(st.one_of(NAMES, st.sampled_from(["a.b", "tool_calls.function.name"])))
    if field == "score":
        made["nested_key"] = draw(st.sampled_from([None, "other"]))
    values: st.SearchStrategy[Any] = {"datetime": TIMES, "integer": NUMBERS, "number": NUMBERS}.get(
        kind, TEXTS
    )
    if kind == "nested" and operator in {"key_equals", "key_not_equals", "in", "not_in"}:
        values = st.one_of(values, st.sampled_from(SPELLED), st.integers(-5, 5))
    if field == "prompt_label":
        values = st.sampled_from(["prod", "dev", "none"])
    if operator == "between":
        made["value"] = [draw(values), draw(values)]
    elif operator in {"in", "not_in"}:
        made["value"] = draw(st.lists(values, max_size=4))
    elif kind != "boolean":
        made["value"] = draw(values)
    return made


GROUPS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.builds(
        lambda logic, some: {"logic": logic, "filters": some},
        st.sampled_from(["AND", "OR"]),
        st.lists(filters(), max_size=3),
    ),
    lambda groups: st.builds(
        lambda logic, some: {"logic": logic, "filters": some},
        st.sampled_from(["AND", "OR"]),
        st.lists(st.one_of(filters(), groups), max_size=3),
    ),
    max_leaves=4,
)
SCORES = st.dictionaries(st.sampled_from(["default", "other"]), st.integers(0, 4), max_size=2)
