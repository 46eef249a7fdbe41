"""GraphQL texts that Dagster's UI process has seen: parsed and validated once, not at every call.

Both take a quarter of the time of a launch, whose text is always the same.
"""

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

_MOST_KEPT = 64
# Texts of the service are short; those of the UI's pages are many and make large trees.
_MOST_CHARS = 2_000

Parse = Callable[[str], Any]
Validate = Callable[..., list[Any]]


class KnownQueries:
    """Parses and validates as the functions given do; remembers short texts without errors."""

    def __init__(self, parse: Parse, validate: Validate) -> None:
        self._parse = parse
        self._parse_once = lru_cache(_MOST_KEPT)(parse)
        self._validate = validate
        # by identity: comparing documents would cost what validating them does
        self._valid: dict[int, Any] = {}

    def parse(self, text: str) -> Any:
        """Return the document of a text: the same one for the same text."""
        return self._parse_once(text) if len(text) <= _MOST_CHARS else self._parse(text)

    def validate(self, schema: Any, document: Any, rules: Any = None) -> list[Any]:
        """Return the errors of a document against the one schema and the one set of rules there is."""
        if self._valid.get(id(document)) is document:
            return []
        errors = self._validate(schema, document, rules=rules)
        if not errors and document.loc.end <= _MOST_CHARS:
            if len(self._valid) >= _MOST_KEPT:
                self._valid.clear()
            self._valid[id(document)] = document
        return errors


def remember_queries(graphql: ModuleType) -> None:
    """Let a module that parses and validates what it is asked remember it."""
    # names that it imports for itself: should a release take another way, it must be heard of
    if not (hasattr(graphql, "parse") and hasattr(graphql, "validate")):
        raise RuntimeError("This release of Dagster reads its queries in another way")
    known = KnownQueries(graphql.parse, graphql.validate)
    vars(graphql).update(parse=known.parse, validate=known.validate)
