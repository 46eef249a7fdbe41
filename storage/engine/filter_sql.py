"""Filter groups as conditions of DuckDB: SQL of fixed words, everything that a client said is a parameter.

A condition speaks of the promised columns of logs, of the facet columns, and of the relation
`SCORES_NOW` (request_id, name, score) where it asks for scores. It says of every log what
`storage.domain.filter_match` says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from storage.domain.filters import FIELDS, Filter, Group, Holds, IsAbsent, OneOf, Range, Test
from storage.domain.words import fold

SCORES_NOW = "log_scores_now_"

Labelled = Mapping[str, Sequence[tuple[int, int]]]
"""What each release label names now: (prompt id, version number) pairs."""

_BLOCKS = '[{"type": "VARCHAR", "text": "VARCHAR"}]'
_INPUT = (
    f'{{"type": "VARCHAR", "messages": [{{"role": "VARCHAR", "content": {_BLOCKS}}}], "content": {_BLOCKS}}}'
)
_OUTPUT = f'{{"type": "VARCHAR", "messages": [{{"content": {_BLOCKS}}}], "content": {_BLOCKS}}}'


def _joined(blocks: str) -> str:
    texts = f"list_transform(list_filter({blocks}, lambda b: b.type = 'text'), lambda b: b.text)"
    return f"array_to_string({texts}, chr(10) || chr(10))"


_MESSAGES = f"list_transform(m.messages, lambda one: '[' || one.role || ']: ' || {_joined('one.content')})"
_CONTENTS = "flatten(list_transform(m.messages, lambda one: one.content))"


def _let(value: str, result: str) -> str:
    """An expression of `m`, a value. It is no subquery: those are made of every row, asked for or not."""
    return f"list_transform([{value}], lambda m: {result})[1]"


INPUT_TEXT = _let(
    f"json_transform(input, '{_INPUT}')",
    f"CASE m.type WHEN 'chat' THEN array_to_string({_MESSAGES}, chr(10) || chr(10)) "
    f"ELSE '[user]: ' || {_joined('m.content')} END",
)
OUTPUT_TEXT = _let(
    f"json_transform(output, '{_OUTPUT}')",
    f"CASE m.type WHEN 'chat' THEN {_joined(_CONTENTS)} ELSE {_joined('m.content')} END",
)
# A role that no message names: a completion is shown as a message of its user.
_IMPLIED = "user"

_COLUMNS = {
    "engine": "model",
    "provider_type": "provider",
    "prompt": "prompt_name",
    "pl_id": "id",
    "cost": "price",
}
_TEXTS = {"input_text": (INPUT_TEXT, "input"), "output_text": (OUTPUT_TEXT, "output")}
_STATEMENTS = {
    "is_json": "output_is_json",
    "is_tool_call": "output_is_tool_call",
    "is_plain_text": "(NOT output_is_json AND NOT output_is_tool_call)",
}
_LISTS = {
    "tags": "tags",
    "metadata_keys": "map_keys(metadata)",
    "tool_names": "output_tool_names",
    "output_keys": "list_distinct(list_transform(output_values, lambda p: p.key))",
    "input_variable_keys": "json_keys(prompt_input_variables)",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of a log in SQL, and the values of its question marks in order."""

    sql: str = "true"
    parameters: list[Any] = field(default_factory=list)

    def also(self, *others: "Condition") -> "Condition":
        """Return the condition that all of them hold."""
        both = [one for one in (self, *others) if one.sql != "true"]
        sql = " AND ".join(f"({one.sql})" for one in both) or "true"
        return Condition(sql, [value for one in both for value in one.parameters])


EVERY_LOG = Condition()


def condition_of(group: Group, labelled: Labelled) -> Condition:
    """Compile a filter group."""
    return _Compiler(labelled).of(group)


def words_condition(words: Sequence[str]) -> Condition:
    """Compile a free-text query: each word begins a word of one of the texts."""
    return EVERY_LOG.also(*(_word(word) for word in words))


def _word(word: str) -> Condition:
    begins = rf"(?i)(?:\A|[^\p{{L}}\p{{N}}]){as_pattern(word)}"
    texts = f"(regexp_matches({INPUT_TEXT}, ?) OR regexp_matches({OUTPUT_TEXT}, ?))"
    found = Condition(texts, [begins, begins])
    return _looked_for(word, ("input", "output"), found)


def _looked_for(word: str, columns: Sequence[str], found: Condition) -> Condition:
    """Look into JSON text before it is parsed: letters and digits stand in it as they are."""
    if fold(word) in _IMPLIED:
        return found
    raw = " OR ".join(f"regexp_matches({column}, ?)" for column in columns)
    looked = [f"(?i){as_pattern(word)}"] * len(columns)
    return Condition(f"CASE WHEN {raw} THEN {found.sql} ELSE false END", [*looked, *found.parameters])


def as_pattern(text: str) -> str:
    r"""Spell a text as a pattern of RE2 that means just it; \x{...} has no other meaning."""
    return "".join(char if char.isalnum() else rf"\x{{{ord(char):x}}}" for char in text)


class _Compiler:
    def __init__(self, labelled: Labelled) -> None:
        self._labelled = labelled

    def of(self, asked: Filter | Group) -> Condition:
        if isinstance(asked, Filter):
            found = self._filter(asked)
            return (
                Condition(f"NOT coalesce({found.sql}, false)", found.parameters) if asked.negated else found
            )
        parts = [self.of(one) for one in asked.filters]
        if len(parts) < 2:  # noqa: PLR2004
            return parts[0] if parts else EVERY_LOG
        # A null counts as false here: nothing above negates it.
        sql = f" {asked.logic} ".join(f"({part.sql})" for part in parts)
        return Condition(sql, [value for part in parts for value in part.parameters])

    def _filter(self, asked: Filter) -> Condition:
        name, test = asked.field, asked.test
        if name == "prompt_label":
            return self._of_label(test)
        if name == "score":
            return _of_score(asked.nested_key or "", test)
        match FIELDS[name]:
            case "boolean":
                found = Condition(_STATEMENTS[name])
            case "array":
                found = _of_list(_LISTS[name], test)
            case "nested":
                found = _NESTED[name](asked.nested_key, test)
            case "text":
                found = _of_text(*_TEXTS[name], test)
            case kind:
                column = _COLUMNS.get(name, name)
                found = _of_value(column, [], test, time=kind == "datetime")
        return found

    def _of_label(self, test: Test) -> Condition:
        if not isinstance(test, OneOf):
            raise TypeError("labels are compared whole")
        named = dict.fromkeys(pair for label in test.values for pair in self._labelled.get(label, ()))
        each = " OR ".join(["(prompt_id = ? AND prompt_version_number = ?)"] * len(named)) or "false"
        return Condition(each, [number for pair in named for number in pair])


def _of_value(value: str, own: list[Any], test: Test, *, time: bool = False) -> Condition:
    """Test an expression with parameters of its own; null matches nothing but IsAbsent."""
    match test:
        case OneOf(values):
            marks = ", ".join("?" * len(values))
            return Condition(f"{value} IN ({marks})", [*own, *values]) if values else Condition("false")
        case Range(low, high):
            mark = "make_timestamptz(?)" if time else "?"
            bounds = [(f"{value} >= {mark}", low), (f"{value} <= {mark}", high)]
            given = [(sql, [*own, bound]) for sql, bound in bounds if bound is not None]
            return EVERY_LOG.also(*(Condition(sql, parameters) for sql, parameters in given))
        case Holds():
            return _has(value, own, test)
        case IsAbsent():
            return Condition(f"{value} IS NULL", own)
        case _:
            raise TypeError("of statements only")


def _has(value: str, own: list[Any], test: Holds) -> Condition:
    if not test.text:
        return Condition(f"{value} IS NOT NULL", own)
    start, end = (r"\A" if test.place == "start" else ""), (r"\z" if test.place == "end" else "")
    return Condition(f"regexp_matches({value}, ?)", [*own, f"(?i){start}{as_pattern(test.text)}{end}"])


def _of_text(text: str, column: str, test: Test) -> Condition:
    if not isinstance(test, Holds):
        raise TypeError("texts are searched")
    found = _has(text, [], test)
    runs = "".join(char if char.isalnum() else " " for char in test.text).split()
    return _looked_for(max(runs, key=len), [column], found) if runs else found


def _of_list(values: str, test: Test) -> Condition:
    match test:
        case OneOf(wanted):
            if len(wanted) == 1:
                return Condition(f"list_contains({values}, ?)", list(wanted))
            return Condition(f"list_has_any({values}, CAST(? AS VARCHAR[]))", [list(wanted)])
        case IsAbsent():
            return Condition(f"len({values}) = 0")
        case _:
            raise TypeError("elements are compared whole")


def _of_score(name: str, test: Test) -> Condition:
    of_name = f"SELECT request_id FROM {SCORES_NOW} WHERE name = ?"  # noqa: S608
    if isinstance(test, IsAbsent):
        return Condition(f"id NOT IN ({of_name})", [name])
    wanted = _of_value("score", [], test)
    return Condition(f"id IN ({of_name} AND ({wanted.sql}))", [name, *wanted.parameters])


def _of_metadata(key: str | None, test: Test) -> Condition:
    if key is None:
        return Condition("len(list_filter(map_values(metadata), lambda v: v <> '')) = 0")
    if isinstance(test, IsAbsent):
        return Condition("coalesce(metadata[?], '') = ''", [key])
    return _of_value("metadata[?]", [key], test)


def _of_variables(name: str | None, test: Test) -> Condition:
    if name is None:
        each = "json_extract_string(prompt_input_variables, '$.*')"
        return Condition(f"len(list_filter({each}, lambda v: v <> '')) = 0")
    value = "json_extract_string(prompt_input_variables, ?)"
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    if isinstance(test, IsAbsent):
        return Condition(f"coalesce({value}, '') = ''", [pointer])
    return _of_value(value, [pointer], test)


def _of_output(key: str | None, test: Test) -> Condition:
    under = "" if key is None else "p.key = ? AND "
    own = [] if key is None else [key]
    if isinstance(test, IsAbsent):
        values = f"list_filter(output_values, lambda p: {under}p.value <> '')"
        return Condition(f"len({values}) = 0", own)
    found = _of_value("p.value", [], test)
    values = f"list_filter(output_values, lambda p: {under}{found.sql})"
    return Condition(f"len({values}) > 0", [*own, *found.parameters])


_NESTED: Mapping[str, Callable[[str | None, Test], Condition]] = {
    "metadata": _of_metadata,
    "output": _of_output,
    "input_variables": _of_variables,
}
