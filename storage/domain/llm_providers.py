"""Names of providers of models, and the operator's list of further ones: `name=https://host/v1, ...`."""

import re
from urllib.parse import urlsplit

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
STUB, OPENAI, ANTHROPIC = "stub", "openai", "anthropic"
_BUILT_IN = frozenset({STUB, OPENAI, ANTHROPIC})


def parse_providers(text: str) -> dict[str, str]:
    """Return base URLs by name.

    Raises:
        ValueError: an entry is no `name=url`, or its name is taken.
    """
    found: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, url = (part.strip() for part in entry.partition("="))
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a provider: lower-case letters, digits, `_` and `-`")
        if name in _BUILT_IN or name in found:
            raise ValueError(f"the provider {name} is there already")
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{name}: {url!r} is no http address")
        found[name] = url
    return found


def key_variable(name: str) -> str:
    """Name the variable of the environment that holds a provider's key."""
    return name.upper().replace("-", "_") + "_API_KEY"
