"""Shapes of configurations: a small part of JSON Schema, which is checked and published as it stands."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from storage.domain.errors import InvalidConfig

Schema = Mapping[str, Any]

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def check_shape(value: Any, schema: Schema, where: str = "config") -> None:
    """Check a JSON value against type, enum, const, required, properties, items, anyOf and bounds.

    Raises:
        InvalidConfig: the first thing that does not fit, named by its path.
    """
    problem = next(_problems(value, schema, where), None)
    if problem:
        raise InvalidConfig(problem)


def _problems(value: Any, schema: Schema, where: str) -> Iterator[str]:
    if "anyOf" in schema:
        yield from _any_of(value, schema["anyOf"], where)
        return
    kind = schema.get("type")
    if kind is not None and not _is_kind(value, kind):
        yield f"{where}: must be {_article(kind)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: must be one of {', '.join(map(str, schema['enum']))}"
        return
    if isinstance(value, str):
        yield from _length(
            len(value), schema.get("minLength", 0), schema.get("maxLength"), where, "character"
        )
    elif isinstance(value, list):
        yield from _length(len(value), schema.get("minItems", 0), schema.get("maxItems"), where, "item")
        for at, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{where}[{at}]")
    elif isinstance(value, dict):
        yield from _members(value, schema, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _bounds(value, schema, where)


def _any_of(value: Any, choices: list[Schema], where: str) -> Iterator[str]:
    found = [next(_problems(value, one, where), None) for one in choices]
    if None in found:
        return
    fitting = [
        problem
        for one, problem in zip(choices, found, strict=True)
        if "type" not in one or _is_kind(value, one["type"])
    ]
    if fitting and fitting[0]:
        yield fitting[0]
        return
    yield f"{where}: must be {' or '.join(_article(one['type']) for one in choices if 'type' in one)}"


def _members(value: dict[str, Any], schema: Schema, where: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}.{name}: is required"
    rest = schema.get("additionalProperties", True)
    for name, inner in value.items():
        if name in known:
            yield from _problems(inner, known[name], f"{where}.{name}")
        elif rest is False:
            allowed = ", ".join(known) or "none"
            yield f"{where}.{name}: is no key of this type; keys are {allowed}"
        elif isinstance(rest, Mapping):
            yield from _problems(inner, rest, f"{where}.{name}")


def _length(size: int, least: int, most: int | None, where: str, unit: str) -> Iterator[str]:
    if size < least:
        yield f"{where}: must have at least {least} {unit}{'s' * (least != 1)}"
    if most is not None and size > most:
        yield f"{where}: must have at most {most} {unit}{'s' * (most != 1)}"


def _bounds(value: float, schema: Schema, where: str) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{where}: must be {schema['minimum']} or more"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{where}: must be {schema['maximum']} or less"
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{where}: must be finite"


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind])


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
