"""The evaluator of Python code: the body of a function over `data`, by CPython itself, behind the walls.

{"prepare": code} compiles it, and answers null; then {"rows": [{title: value}]} answers, for as many of the
first rows as fit into half a second, [value] or {"error", "message", "line"}. A row has globals of its own.

The modules named below can be imported, and nothing else: an import finds no file any more. `print` prints
nowhere, the zone is UTC, and `random` is seeded anew in each worker.
"""

import ast
import builtins
import importlib
import json
from time import monotonic
from types import CodeType, FunctionType, TracebackType
from typing import Any, NoReturn, cast

from storage.engine.sandbox.inside.worker import Evaluator, Refusal

MODULES = (
    *("abc", "ast", "base64", "binascii", "bisect", "calendar", "cmath", "codecs", "collections"),
    *("collections.abc", "colorsys", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal"),
    *("difflib", "enum", "fnmatch", "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac", "html"),
    *("html.entities", "html.parser", "io", "ipaddress", "itertools", "json", "keyword", "locale", "math"),
    *("numbers", "operator", "pprint", "random", "re", "reprlib", "secrets", "statistics", "string"),
    *("stringprep", "struct", "textwrap", "time", "traceback", "types", "typing", "unicodedata"),
    *("urllib.parse", "uuid", "warnings", "weakref", "xml.etree.ElementTree", "zlib"),
    # imported by the ones above when they are first used, which is too late
    *("_strptime", "encodings.ascii", "encodings.cp1252", "encodings.idna", "encodings.latin_1"),
    *("encodings.punycode", "encodings.utf_16", "encodings.utf_32", "encodings.utf_8_sig", "linecache"),
)
MAX_VALUE = 8_388_608

_FILE = "<code>"
_BATCH_S = 0.5
_LONGEST_MESSAGE = 1000
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Row(dict[str, Any]):
    """The values of a row by title; a title that is a name is also an attribute."""

    __slots__ = ()

    def __getattr__(self, title: str) -> Any:
        try:
            return self[title]
        except KeyError:
            raise AttributeError(title) from None


def evaluator() -> Evaluator:
    """Return an evaluator with all that it may ever import."""
    for name in MODULES:
        importlib.import_module(name)
    evaluate = _Evaluator()
    # what is loaded at first use is loaded now
    evaluate({"prepare": "import hashlib, datetime\nreturn hashlib.sha256(b'x').hexdigest()"})
    evaluate({"rows": [{}]})
    return evaluate


class _Evaluator:
    def __init__(self) -> None:
        self._code: CodeType | None = None

    def __call__(self, request: Any) -> Any:
        if "prepare" in request:
            self._code = compiled(request["prepare"])
            return None
        if self._code is None:
            raise Refusal({"why": "nothing was prepared"})
        return self._evaluated(self._code, request["rows"])

    def _evaluated(self, code: CodeType, rows: list[dict[str, Any]]) -> bytes:
        until = monotonic() + _BATCH_S
        parts: list[str] = []
        for row in rows:
            parts.append(_result(code, row))
            if monotonic() > until:
                break
        # as UTF-8 may; half a surrogate pair is refused row by row
        return f"[{','.join(parts)}]".encode()


def compiled(source: str) -> CodeType:
    """Compile the body of a function over `data`.

    Raises:
        Refusal: it does not parse; names line and position, from 1.
    """
    try:
        # the tree is put into a function; indenting the text would change what stands between triple quotes
        body = ast.parse(source, _FILE).body or [ast.Pass()]
        module = ast.parse("def cell(data): pass", _FILE)
        cast("ast.FunctionDef", module.body[0]).body = body
        whole = compile(ast.fix_missing_locations(module), _FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        _refuse(error.msg, error.lineno, error.offset)
    except ValueError as error:  # a NUL
        _refuse(str(error))
    except (RecursionError, MemoryError):
        _refuse("it is nested too deeply")
    code = next(part for part in whole.co_consts if isinstance(part, CodeType))
    if code.co_flags & _YIELDS:
        _refuse("it yields; `return` gives the cell")
    return code


_YIELDS = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


def _refuse(why: str, line: int | None = None, position: int | None = None) -> NoReturn:
    raise Refusal({"why": why, "line": line, "position": position}) from None


def _result(code: CodeType, row: dict[str, Any]) -> str:
    try:
        value = FunctionType(code, {"__builtins__": builtins, "__name__": "cell"})(Row(row))
        text = _ENCODER.encode(value)
        text.encode()
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001  also SystemExit is but an error of the row
        return _error(error)
    if len(text) > MAX_VALUE:
        return _spelled("ValueError", f"the value is over {MAX_VALUE} characters as JSON", None)
    return f"[{text}]"


def _error(error: BaseException) -> str:
    name, line = type(error).__name__, _line_of(error.__traceback__)
    try:
        message = str(error)[:_LONGEST_MESSAGE]
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001  a __str__ of the tenant's
        message = ""
    return _spelled(name, message, line)


def _spelled(name: str, message: str, line: int | None) -> str:
    fields = {"error": name, "message": message, "line": line}
    return json.dumps(fields)  # ASCII: a message may hold what UTF-8 cannot


def _line_of(traceback: TracebackType | None) -> int | None:
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
