"""The evaluator of Python code: the body of a function over `data`, by CPython itself, behind the walls.

{"inspect": code} checks it and answers which titles it reads (`CodeReads`).
{"prepare": code} compiles it, and answers null; then {"rows": number, "names": [title, ...]} with an array of
values a name answers as `cells` says. A row has globals of its own.

The modules named below can be imported, and nothing else: an import finds no file any more. `print` prints
nowhere, the zone is UTC, and `random` is seeded anew in each worker.
"""

import ast
import builtins
import importlib
import json
from dataclasses import asdict
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from types import CodeType, FunctionType, TracebackType
from typing import Any, NoReturn, cast

from storage.domain.python_reads import read_python
from storage.engine.sandbox.inside.cells import CODE_ERROR, Cells
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

_FILE = "<code>"


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
    evaluate({"inspect": "import hashlib, datetime\nreturn hashlib.sha256(b'x').hexdigest() + data['a']"})
    evaluate({"prepare": "import hashlib, datetime\nreturn hashlib.sha256(b'x').hexdigest()"})
    evaluate({"rows": 1, "names": [], "parts": []})
    return evaluate


class _Evaluator:
    def __init__(self) -> None:
        self._code: CodeType | None = None

    def __call__(self, request: Any) -> Any:
        if "inspect" in request:
            compiled(request["inspect"])
            return asdict(read_python(request["inspect"]))
        if "prepare" in request:
            self._code = compiled(request["prepare"])
            return None
        if self._code is None:
            raise Refusal({"why": "nothing was prepared"})
        return _evaluated(self._code, request)


def _evaluated(code: CodeType, request: Any) -> bytes:
    names, count = request["names"], request["rows"]
    columns = [json.loads(part) for part in request["parts"]]
    cells = Cells()
    for values in zip(*columns, strict=True) if columns else [()] * count:
        _evaluate(code, Row(zip(names, values, strict=True)), cells)
        if cells.full:
            break
    return cells.spelled()


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


def _evaluate(code: CodeType, row: Row, cells: Cells) -> None:
    try:
        value = FunctionType(code, {"__builtins__": builtins, "__name__": "cell"})(row)
        text = "".join(_spell(value, 0))
        text.encode()
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001  also SystemExit is but an error of the row
        _open.clear()
        cells.fail(CODE_ERROR, _told(error), _line_of(error.__traceback__))
    else:
        cells.add(text)


def _told(error: BaseException) -> str:
    try:
        message = str(error)
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001  a __str__ of the tenant's
        message = ""
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def _no_json(value: Any) -> NoReturn:
    raise TypeError(f"a cell is a JSON value; {type(value).__name__} is none")


_open: dict[int, Any] = {}  # containers being spelled: one that holds itself is an error
# as json.JSONEncoder makes it for every value anew, at the price of a small row
_spell = c_make_encoder(_open, _no_json, encode_basestring, None, ":", ",", False, False, False)


def _line_of(traceback: TracebackType | None) -> int | None:
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
