"""Which columns a PYTHON column reads: the literal uses of `data` in its code."""

import ast
from typing import Any

from storage.domain.column_types.binding import CodeReads
from storage.domain.errors import InvalidConfig

_DATA = "data"


def read_python(code: str) -> CodeReads:
    """Find `data["T"]`, `data.get("T")` and `data.T`; any other use of `data` counts as reading more.

    Raises:
        InvalidConfig: the code does not parse; names line and position, from 1.
    """
    try:
        tree = ast.parse(code, mode="exec")
    except SyntaxError as error:
        place = f"line {error.lineno or 1}, position {error.offset or 1}"
        raise InvalidConfig(f"config.code: {place}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidConfig(f"config.code: cannot be read: {type(error).__name__}") from error
    return _reads(tree)


def _reads(tree: ast.AST) -> CodeReads:
    titles: dict[ast.Name, str] = {}
    uses: list[ast.Name] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == _DATA:
            uses.append(node)
            continue
        found = _literal_use(node)
        if found is not None:
            title, name = found
            titles[name] = title
    # the tree is walked level by level; titles go in the order of the text
    uses.sort(key=lambda name: (name.lineno, name.col_offset))
    named = dict.fromkeys(titles[use] for use in uses if use in titles)
    return CodeReads(tuple(named), others=any(use not in titles for use in uses))


def _literal_use(node: Any) -> tuple[str, ast.Name] | None:
    """Return the title that a node reads and the `data` in it."""
    match node:
        case ast.Subscript(value=ast.Name(id="data") as name, slice=ast.Constant(value=str(title))):
            return title, name
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="data") as name, attr="get"),
            args=[ast.Constant(value=str(title)), *_],
        ):
            return title, name
        case ast.Attribute(value=ast.Name(id="data") as name, attr=attr) if attr not in _METHODS:
            return attr, name
    return None


_METHODS = frozenset(dir(dict))
