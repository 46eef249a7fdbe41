"""JavaScript code over rows: the language, what becomes of a row that fails, what attacks come to."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from storage.domain.errors import InvalidConfig
from storage.engine.sandbox.code import SandboxedCode
from storage.engine.sandbox.kinds import JAVASCRIPT
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.process import Worker
from tests.storage.sandbox.evaluating import Cell, asked_of, cells, one

HASTY = replace(JAVASCRIPT, name="hasty javascript", wall_s=0.7)


@pytest.fixture(scope="module")
def javascript() -> Iterator[SandboxedCode]:
    pool = Pool()
    yield SandboxedCode(pool, JAVASCRIPT, 1)
    pool.close()


@pytest.fixture(scope="module")
def worker(javascript: SandboxedCode) -> Iterator[Worker]:
    with javascript.pool.lease(JAVASCRIPT, 1) as worker:
        yield worker


def cell(worker: Worker, code: str, **row: Any) -> Cell:
    (found,) = asked_of(worker, code, [row])
    return found


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("return data['a'] + data.a", 4),
        ('return data["User Question"]', "why?"),
        ("return data.gone", None),
        ("", None),
        ("return", None),
        ("return NaN", None),
        ("return () => 1", None),
        ("// a note", None),
        ("const {a} = data\nreturn `${a}!`", "2!"),
        ("return {k: [1, 2.5, null, true, 'ü']}", {"k": [1, 2.5, None, True, "ü"]}),
        ("return [3, 1, 2].sort().map(n => n * 2)", [2, 4, 6]),
        ("return 'a-b'.split('-').join('+').replace(/b/i, 'c')", "a+c"),
        ("return new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"),
        ("return JSON.parse('[1]').concat(Object.keys({x: 1}))", [1, "x"]),
        ("class P { constructor() { this.x = 1 } }\nreturn new P().x", 1),
        ("class E extends Error { constructor() { super('q'); this.name = 'E' }}\nreturn '' + new E", "E: q"),
        ("const o = {}; o.toString = () => 'own'; o.constructor = 1\nreturn String(o)", "own"),
        ("return [...new Set([1, 1, 2])].length + Math.max(1, 2)", 4),
        ("function f(n) { return n ? n * f(n - 1) : 1 }\nreturn f(5)", 120),
        ("try { throw 1 } catch (e) { return e }", 1),
        ("return JSON.stringify(data)", '{"a":2,"User Question":"why?"}'),
        ("return 'x'.repeat(100_000).length", 100_000),
        ("let s = ''; for (let i = 0; i < 50_000; i++) s += 'ab'; return s.length", 100_000),
        ("let s = ''; for (let i = 0; i < 9_000; i++) s += 'ab'; return s", "ab" * 9_000),
    ],
)  # fmt: skip
def test_code_is_the_body_of_a_function_over_the_row(worker: Worker, code: str, value: Any) -> None:
    assert cell(worker, code, a=2, **{"User Question": "why?"}) == Cell(value)


def test_values_come_as_what_they_are(javascript: SandboxedCode) -> None:
    values = (1, 1.5, "1", True, None, [1], {"k": None}, "\u2028\U0001f600")
    rows = [{"x": value} for value in values]
    kinds = [cell.value for cell in cells(javascript, "return [typeof data.x, data.x]", rows)]
    names = ["number", "number", "string", "boolean", "object", "object", "object", "string"]
    assert kinds == [[name, row["x"]] for name, row in zip(names, rows, strict=True)]


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("const x = 1\nnull.x", "code_error", "Line 2: TypeError: "),
        (
            "function f() {\n  throw new RangeError('no')\n}\nreturn f()",
            "code_error",
            "Line 2: RangeError: no",
        ),
        ("throw 'a text'", "code_error", "a text"),
        ("throw null", "code_error", "null"),
        ("throw {toString() { throw 1 }}", "code_error", "an error that cannot be spelled"),
        ("function f() { return f() }\nreturn f()", "code_error", "Maximum call stack"),
        ("x = 1", "code_error", "Line 1: ReferenceError: x is not defined"),
        ("return 10n", "code_error", "TypeError: "),
        ("const a = {}; a.a = a\nreturn a", "code_error", "circular"),
        ("let x = []; for (let i = 0; i < 300; i++) x = [x]\nreturn x", "code_error", "200 deep"),
        ("return (async () => 1)()", "code_error", "a promise is no cell"),
        ("return '\\ud800'", "code_error", "surrogate"),
        ("return 'x'.repeat(9_000_000)", "result_too_large", "8388608"),
        ("const a = []; while (true) a.push('x'.repeat(1e6) + a.length)", "memory_limit", "memory"),
    ],
)
def test_an_error_is_the_rows_own(javascript: SandboxedCode, code: str, error: str, message: str) -> None:
    cell = one(javascript, code)
    assert (cell.value, cell.error) == (None, error)
    assert message in cell.message


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("const x = 1\nretrun x y", "config.code: line 2"),
        ("return (", "config.code: line"),
        ("yield 1", "config.code: line 1"),
        ("import 'x'", "config.code: line 1"),
        ("}), (function () {", "config.code"),
        ("}, function () {", "config.code"),
        ("} method() {", "config.code"),
        ("return 1\0", "NUL"),
        ("(" * 100_000, "nested too deeply"),
        ("return `${", "config.code: line"),
    ],
)
def test_what_does_not_parse_is_refused_before_any_row(
    javascript: SandboxedCode, code: str, words: str
) -> None:
    with pytest.raises(InvalidConfig) as refused:
        javascript.inspect(code)
    assert words in refused.value.message
    with pytest.raises(InvalidConfig):
        cells(javascript, code, [{}])


def test_nothing_of_the_code_runs_when_it_is_only_looked_at(javascript: SandboxedCode) -> None:
    assert javascript.inspect("while (true) {}\nreturn data.a") == {"titles": ["a"], "others": False}


REACHING_OUT = [
    "std", "os", "require", "process", "console", "fetch", "print", "scriptArgs", "XMLHttpRequest", "Deno",
    "setTimeout", "globalThis.std.open('/etc/passwd')", "new Worker('x')",
]  # fmt: skip


def test_there_is_nothing_to_reach_out_with(worker: Worker) -> None:
    for name in REACHING_OUT:
        found = cell(worker, f"return {name} && 1")
        assert found.error == "code_error", name
    found = cell(worker, "return import('os').then(m => 1)")
    assert found.error == "code_error"


@pytest.mark.parametrize(
    "code",
    [
        "Object.prototype.seen = 1",
        "Array.prototype.push = () => 1",
        "globalThis.seen = 1",
        "JSON.stringify = () => '7'",
        "Object.defineProperty(globalThis, 'seen', {value: 1})",
        "Function.prototype.call = 1",
        "(function () { this.x = 1 })()",
        "Object.getPrototypeOf(function* () {}).seen = 1",
        "Object.getPrototypeOf([][Symbol.iterator]()).next = 1",
        "delete Object.prototype.toString",
        "Error.prototype.name = 'mine'",
        "Object.setPrototypeOf(Math, {seen: 1})",
    ],
)
def test_rows_cannot_leave_anything_to_each_other(worker: Worker, code: str) -> None:
    assert cell(worker, code).error == "code_error"


BOMBS = {
    "a loop": "while (true) {}",
    "a regular expression": "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "a caught loop": "while (true) { try { while (true) {} } catch {} }",
    "an endless toJSON": "return {toJSON() { while (true) {} }}",
    "an endless message": "throw {toString() { while (true) {} }}",
    "endless keys": "return new Proxy({}, {ownKeys() { while (true) {} }})",
    "a large number": "return String(2n ** (2n ** 30n)).length",
    "a sort": "new Array(1e8).fill(0).sort(() => { while (true) {} })",
    "memory": "const a = []; while (true) a.push(new Uint8Array(1e6))",
    "doubling": "let x = 'x'; while (true) x += x",
    "a flood of objects": "let x = null; while (true) x = {x}",
}
FEW = {"a loop", "a regular expression", "memory"}


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in BOMBS]
)
def test_a_bomb_fails_its_row_alone_and_the_next_tenant_is_served(
    javascript: SandboxedCode, name: str
) -> None:
    hasty = replace(javascript, kind=HASTY)
    rows = [{"n": number} for number in range(5)]
    found = cells(hasty, f"if (data.n === 2) {{ {BOMBS[name]} }}\nreturn data.n", rows)
    assert [cell.value for cell in found if cell.error is None] == [0, 1, 3, 4]
    assert found[2].error in {"timeout", "memory_limit", "code_error"}
    assert one(replace(hasty, workspace_id=2), "return data.a", a=1) == Cell(1)


def test_wide_rows_go_in_smaller_batches(javascript: SandboxedCode) -> None:
    rows = [{"n": number, "text": "x" * 200_000} for number in range(400)]
    found = cells(javascript, "return data.n + data.text.length", rows)
    assert [cell.value for cell in found] == [number + 200_000 for number in range(400)]


def test_many_rows_come_back_in_order_through_slow_batches(javascript: SandboxedCode) -> None:
    rows = [{"n": number} for number in range(3000)]
    code = (
        "if (data.n % 1000 === 0) { const end = Date.now() + 600; while (Date.now() < end) {} }\n"
        "if (data.n === 1234) throw 'no'\nreturn data.n"
    )
    found = cells(javascript, code, rows)
    assert [cell.value for cell in found] == [n if n != 1234 else None for n in range(3000)]
    assert found[1234].error == "code_error"
