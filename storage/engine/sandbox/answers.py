"""Answers of a worker about rows, read strictly: it belongs to the tenant by then."""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from storage.domain.results import CellError

_LONGEST_MESSAGE = 1_000
_LONGEST_CODE = 64
_DEEPEST = 200
_NESTING = {list, dict}


class Unreadable(ValueError):
    """What the worker said is no answer."""


def read_cells(body: bytes, asked: int) -> tuple[list[Any], dict[int, CellError]]:
    """Return the values of the first rows, and the errors by place; a row with an error has no value.

    Raises:
        Unreadable: it is no answer to a request of `asked` rows.
    """
    try:
        answer = _DECODER.decode(body.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise Unreadable from error
    match answer:
        case {"values": list() as values, "errors": list() as failures} if 1 <= len(values) <= asked:
            errors = dict(_error(failure, len(values)) for failure in failures)
        case _:
            raise Unreadable
    for at in errors:
        values[at] = None
    _drop_unsound(body, values, errors)
    return values, errors


def _error(failure: Any, count: int) -> tuple[int, CellError]:
    match failure:
        case [int() as at, str() as code, str() as message, int() | None as line] if 0 <= at < count:
            place = f"Line {line}: " if line is not None else ""
            return at, CellError(_printable(code)[:_LONGEST_CODE], place + _printable(message))
    raise Unreadable


def _drop_unsound(body: bytes, values: list[Any], errors: dict[int, CellError]) -> None:
    """Take out what no reader of the cell could be given: half surrogate pairs, nesting without end."""
    surrogates = b"\\ud" in body or b"\\uD" in body or b"\xed" in body
    if not surrogates and _NESTING.isdisjoint(map(type, values)):
        return
    for at, value in enumerate(values):
        kind = type(value)
        if kind in _NESTING and not _is_shallow(value):
            errors[at] = CellError("code_error", f"The value is nested more than {_DEEPEST} deep")
        elif surrogates and kind in {str, list, dict} and not _is_sound(value):
            errors[at] = CellError("code_error", "The text holds half of a surrogate pair")
        else:
            continue
        values[at] = None


def _is_shallow(value: Any) -> bool:
    # most hold nothing that holds anything
    if _NESTING.isdisjoint(map(type, value.values() if isinstance(value, Mapping) else value)):
        return True
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = [one.values() if isinstance(one, Mapping) else one for one in level]
        level = [part for one in inner for part in one if isinstance(part, (list, dict))]
        if not level:
            return True
    return False


def _is_sound(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    return text[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)
