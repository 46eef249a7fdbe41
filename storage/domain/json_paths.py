"""JSON paths: `$.a.b[0]["c d"]`, with or without `$`; a place in a JSON value, no wildcards."""

import re

from storage.domain.errors import InvalidConfig

_STEP = re.compile(
    r"""\.?(?P<name>[^\W\d][\w-]*)|\[(?P<index>-?\d{1,9})\]|\[(?P<quoted>"(?:[^"\\]|\\["\\])*"|'(?:[^'\\]|\\['\\])*')\]"""
)
_ESCAPED = re.compile(r"\\(.)")


def parse_json_path(path: str, where: str = "json_path") -> tuple[str | int, ...]:
    """Return the steps of a path: names and indices (negative ones from the end).

    Raises:
        InvalidConfig: it is none; names the position, from 1.
    """
    at = 1 if path.startswith("$") else 0
    steps: list[str | int] = []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (at and step.group("name") and path[at] != "."):
            raise InvalidConfig(f'{where}: position {at + 1}: is no step such as `.name`, `[0]` or `["a b"]`')
        if step.group("index") is not None:
            steps.append(int(step.group("index")))
        elif step.group("quoted") is not None:
            steps.append(_ESCAPED.sub(r"\1", step.group("quoted")[1:-1]))
        else:
            steps.append(step.group("name"))
        at = step.end()
    return tuple(steps)
