"""Python code over rows: what it may use, what becomes of a row that fails, what attacks come to."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from storage.domain.errors import InvalidConfig
from storage.engine.sandbox.code import SandboxedCode
from storage.engine.sandbox.inside.python import MODULES
from storage.engine.sandbox.kinds import PYTHON
from storage.engine.sandbox.pool import Pool
from tests.storage.sandbox.evaluating import Cell, cells, one

HASTY = replace(PYTHON, name="hasty python", wall_s=0.7)


@pytest.fixture(scope="module")
def python() -> Iterator[SandboxedCode]:
    pool = Pool()
    yield SandboxedCode(pool, PYTHON, 1)
    pool.close()


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("return data['a'] + data.a + data.get('a')", 6),
        ("return data['User Question']", "why?"),
        ("return data.get('gone', 'd')", "d"),
        ("text = '''one\n  two'''\nreturn text", "one\n  two"),
        ("def twice(x):\n    return x * 2\nreturn [twice(n) for n in (1, 2)]", [2, 4]),
        ("class P:\n    x = 1\nreturn P().x", 1),
        ("global g\ng = 1\nreturn g", 1),
        ("return {'k': [1, 2.5, None, True, 'ü']}", {"k": [1, 2.5, None, True, "ü"]}),
        ("return (1, 2)", [1, 2]),
        ("return 10 ** 30", 10**30),
        ("pass", None),
        ("", None),
        ("# a note", None),
        ("import json, re, math\nreturn json.loads('[1]') + re.findall('b', 'abc') + [math.pi]",
         [1, "b", 3.141592653589793]),
        ("from datetime import datetime\nreturn datetime.strptime('2026-01-05', '%Y-%m-%d').isoformat()",
         "2026-01-05T00:00:00"),
        ("import time\nreturn time.localtime(0).tm_hour", 0),
        ("import statistics, decimal\nreturn [statistics.mean([1, 2]), str(decimal.Decimal('0.1') * 3)]",
         [1.5, "0.3"]),
        ("import hashlib\nreturn hashlib.sha256(b'x').hexdigest()[:8]", "2d711642"),
        ("import uuid, random, secrets\nreturn len(str(uuid.uuid4())) + len(secrets.token_hex()) > 0", True),
        ("return 'straße.de'.encode('idna').decode()", "strasse.de"),
        ("import xml.etree.ElementTree as E\nreturn E.fromstring('<a>x</a>').text", "x"),
        ("print('anything', 1)\nreturn 1", 1),
    ],
)  # fmt: skip
def test_code_is_the_body_of_a_function_over_the_row(python: SandboxedCode, code: str, value: Any) -> None:
    assert one(python, code, a=2, **{"User Question": "why?"}) == Cell(value)


@pytest.mark.parametrize(
    ("code", "error", "line"),
    [
        ("x = 1\nreturn x / 0", "ZeroDivisionError", 2),
        ("return data.gone", "AttributeError", 1),
        ("return data['gone']", "KeyError", 1),
        ("def f():\n    raise ValueError('no')\nreturn f()", "ValueError: no", 2),
        ("def f(): f()\nf()", "RecursionError", 1),
        ("return {1, 2}", "TypeError", None),
        ("return float('nan')", "ValueError", None),
        ("x = []\nx.append(x)\nreturn x", "ValueError", None),
        ("x = []\nfor _ in range(100000): x = [x]\nreturn x", "RecursionError", None),
        ("x = []\nfor _ in range(300): x = [x]\nreturn x", "The value is nested more than 200 deep", None),
        ("return '\\ud800'", "UnicodeEncodeError", None),
        ("raise SystemExit", "SystemExit", 1),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E", 3),
        ("raise ValueError('x' * 10 ** 6)", "ValueError", 1),
    ],
)
def test_an_error_is_the_rows_own_and_names_the_line(
    python: SandboxedCode, code: str, error: str, line: int | None
) -> None:
    cell = one(python, code)
    assert (cell.error, cell.value) == ("code_error", None)
    assert error in cell.message
    assert len(cell.message) <= 1020
    if error != "RecursionError":
        assert cell.message.startswith(f"Line {line}: ") == (line is not None)


def test_a_value_that_is_too_large_is_said_to_be(python: SandboxedCode) -> None:
    cell = one(python, "return 'x' * 9_000_000")
    assert (cell.value, cell.error) == (None, "result_too_large")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1\nretrun x", "code: line 2, position 8: invalid syntax"),
        ("if x:", "code: line 1"),
        ("  return 1", "code: line 1"),
        ("yield 1", "it yields"),
        ("async for x in y: pass", "code: line 1"),
        ("break", "code: line 1"),
        ("from math import *", "code: line 1"),
        ("nonlocal x", "code: line 1"),
        ("return 1\0", "code: "),
        ("return " + "(" * 5000 + ")" * 5000, "code: "),
        ("return " + "-" * 100_000 + "1", "code: "),
    ],
)
def test_what_does_not_parse_is_refused_before_any_row(python: SandboxedCode, code: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        python.inspect(code)
    assert words in refused.value.message


def test_code_that_does_not_parse_has_no_rows(python: SandboxedCode) -> None:
    with pytest.raises(InvalidConfig, match="code: line 1"):
        cells(python, "retrun 1", [{}])


WRAP_CLOSE = "[c] = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']\n"
CTYPES = "import sys\nc = sys.modules['storage.engine.sandbox.inside.proof'].ctypes\n"
ENTITY = (
    "from xml.etree.ElementTree import XML\n"
    "return XML('<!DOCTYPE l [<!ENTITY a SYSTEM \"/etc/passwd\">]><l>&a;</l>').text"
)
ATTACKS = [
    "return open('/etc/passwd').read()",
    "import io\nreturn io.FileIO('/etc/passwd').read().decode()",
    "import os\nreturn os.listdir('/')",
    "import os\nreturn os.popen('id').read()",
    "import os\nos.fork()\nreturn 1",
    "import os\nos.kill(1, 0)\nreturn 1",
    "import os\nos.kill(os.getppid(), 9)\nreturn 1",
    "import os\nos.symlink('/etc/passwd', '/tmp/left-by-an-attack')\nreturn 1",
    "import os\nwhile True: os.fork()",
    ENTITY,
    "import posix\nreturn posix.open('/etc/passwd', 0)",
    "import subprocess\nreturn 1",
    "import socket\nreturn 1",
    "import ctypes\nreturn 1",
    "import mmap\nreturn 1",
    "import multiprocessing\nreturn 1",
    "import storage.store\nreturn 1",
    "return __import__('os').open('/etc/passwd', 0)",
    "import importlib\nimportlib.import_module('sqlite3')\nreturn 1",
    "import sys\nreturn sys.modules['os'].stat('/').st_ino",
    "import sys\nsys.modules['posix'].system('true') and 1/0\nreturn 1",
    "import sys\nreturn sys._getframe(2).f_globals['os'].listdir('/')",
    WRAP_CLOSE + "return c.__init__.__globals__['listdir']('/')",
    "return ().__class__.__base__.__subclasses__()[0].__init__.__globals__",
    CTYPES + "return c.CDLL(None).open(b'/etc/passwd', 0) if c.CDLL(None).open(b'/', 0) >= 0 else 1/0",
    CTYPES + "return 1/0 if c.CDLL(None).fork() == -1 else 1",
    "import _thread\n_thread.start_new_thread(print, ())\nreturn 1",
    "import gc\nreturn [o for o in gc.get_objects() if 'X-API-KEY' == o][0]",
    "import uuid\nreturn uuid.getnode() and open('/sys/class/net/lo/address').read()",
    "import urllib.request\nreturn 1",
    "import time\ntime.tzset()\nreturn open('/etc/localtime', 'rb').read().hex()",
    "return input()[0]",
    "exec('import sqlite3')\nreturn 1",
    "return eval(\"open('/proc/self/environ').read()\")",
]  # fmt: skip


def test_what_reaches_out_fails_in_its_row(python: SandboxedCode) -> None:
    attack = (
        "scope = {}\n"
        "exec('def cell():\\n' + ''.join(f'    {line}\\n' for line in data.code.split('\\n')), scope)\n"
        "return scope['cell']()"
    )
    results = cells(python, attack, [{"code": code} for code in ("return 7", *ATTACKS)])
    assert results[0] == Cell(7)
    got_out = {code: cell.value for code, cell in zip(ATTACKS, results[1:], strict=True) if not cell.error}
    assert got_out == {}


def test_nothing_of_the_service_is_in_sight(python: SandboxedCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTLAKE_API_KEY", "s3cret")
    code = (
        "import os, sys\n"
        "return [dict(os.environ), sys.argv[1:], sorted({m.split('.')[0] for m in sys.modules})]"
    )
    pool = Pool()
    try:
        environ, arguments, modules = one(SandboxedCode(pool, PYTHON, 1), code).value
    finally:
        pool.close()
    assert (environ, arguments) == ({}, [])
    assert not {"sqlalchemy", "duckdb", "pydantic", "polars", "ctypes", "socket", "subprocess"} & set(modules)


EACH = "import os\nfor fd in range(64):\n"
BOMBS = {
    "a loop": "while True: pass",
    "a regular expression": "import re\nreturn bool(re.match(r'(a+)+$', 'a' * 40 + 'b'))",
    "a power": "return len(str(7 ** 10 ** 7))",
    "a long sum": "return sum(range(10 ** 14))",
    "prints": "while True: print('x' * 10 ** 5)",
    "a caught exit": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "memory": "return len(bytearray(10 ** 9))",
    "doubling": "x = 'x'\nwhile True: x += x",
    "its end": "import os\nos._exit(0)",
    "closed frames": "import os\nos.closerange(0, 100)",
    "forged frames": EACH + "    try: os.write(fd, b'x' * 9)\n    except OSError: pass",
    "eaten frames": EACH + "    try: os.read(fd, 9)\n    except OSError: pass",
    "an endless message": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    "code of no sense": "f = lambda: 0\nf.__code__ = f.__code__.replace(co_code=b'\\xff' * 64)\nf()",
    "generators": "def g():\n    while True: yield 1\nreturn list(g())",
    "a crash": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): return [f()]\nf()",
}


FEW = {"a loop", "memory", "its end", "forged frames", "code of no sense"}


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in BOMBS]
)
def test_a_bomb_fails_its_row_alone(python: SandboxedCode, name: str) -> None:
    hasty = replace(python, kind=HASTY)
    body = "".join(f"    {line}\n" for line in BOMBS[name].split("\n"))
    rows = [{"n": number} for number in range(5)]
    results = cells(hasty, f"if data.n == 2:\n{body}return data.n", rows)
    assert [result.value for result in results if result.error is None] == [0, 1, 3, 4]
    assert results[2].error in {"timeout", "memory_limit", "code_error", "result_too_large"}
    other = replace(hasty, workspace_id=2)
    assert one(other, "return data.a", a=1) == Cell(1)


def test_a_thousand_bombs_are_given_up_after_a_few(python: SandboxedCode) -> None:
    impatient = replace(python, most_limits=2)
    results = cells(impatient, "import os\nos._exit(0)", [{}] * 1000)
    assert [result.error for result in results] == ["memory_limit"] * 2 + ["not_tried"] * 998


def test_rows_do_not_see_each_other_and_operations_do_not_either(python: SandboxedCode) -> None:
    code = "global seen\ntry: seen += 1\nexcept NameError: seen = 1\nreturn seen"
    assert {result.value for result in cells(python, code, [{}] * 50)} == {1}
    spoil = "import json\njson.spoiled = True\nreturn 1"
    assert one(python, spoil) == Cell(1)
    assert one(python, "import json\nreturn hasattr(json, 'spoiled')") == Cell(False)


def test_many_rows_come_back_in_order_through_slow_batches(python: SandboxedCode) -> None:
    rows = [{"n": number} for number in range(3000)]
    code = "import time\nif data.n % 500 == 0: time.sleep(0.3)\nif data.n == 1234: 1/0\nreturn data.n"
    results = cells(python, code, rows)
    assert [result.value for result in results] == [n if n != 1234 else None for n in range(3000)]
    assert results[1234].message == "Line 3: ZeroDivisionError: division by zero"


def test_a_worker_that_is_spent_is_replaced_within_an_operation(python: SandboxedCode) -> None:
    brief = replace(python, kind=replace(PYTHON, name="brief python", requests=3), batch_rows=10)
    results = cells(brief, "import os\nreturn [data.n, os.getpid()]", [{"n": n} for n in range(60)])
    assert [result.value[0] for result in results] == list(range(60))
    assert len({result.value[1] for result in results}) > 1


def test_a_row_that_is_too_large_to_be_sent_fails_alone(python: SandboxedCode) -> None:
    rows = [{"x": "a"}, {"x": "x" * (65 << 20)}, {"x": "b"}]
    results = cells(python, "return data.x", rows)
    assert [result.value for result in results] == ["a", None, "b"]
    assert results[1].error == "input_too_large"


def test_the_modules_that_can_be_imported_are_the_standard_librarys() -> None:
    assert {name.split(".")[0] for name in MODULES} <= sys.stdlib_module_names
