"""Short queries of Dagster's UI process are parsed and validated once; every answer is what it would be."""

from types import ModuleType
from typing import Any

import pytest
from graphql import GraphQLError, GraphQLSchema, build_schema, parse, validate

from pipelines.instance.known_queries import KnownQueries, remember_queries

SCHEMA = build_schema("type Query { a(n: Int): Int }")


class Counting(KnownQueries):
    def __init__(self) -> None:
        self.parsed = self.validated = 0
        super().__init__(self._count_parse, self._count_validate)

    def _count_parse(self, text: str) -> Any:
        self.parsed += 1
        return parse(text)

    def _count_validate(self, schema: GraphQLSchema, document: Any, *, rules: Any) -> Any:
        self.validated += 1
        return validate(schema, document, rules=rules)

    def ask(self, text: str) -> list[str]:
        return [error.message for error in self.validate(SCHEMA, self.parse(text), rules=None)]


def test_a_text_is_parsed_and_validated_once() -> None:
    known = Counting()
    assert [known.ask("{ a(n: 1) }") for _ in range(3)] == [[], [], []]
    assert known.ask("{ a(n: 2) }") == []
    assert (known.parsed, known.validated) == (2, 2)


def test_what_is_wrong_is_told_every_time() -> None:
    known = Counting()
    for _ in range(2):
        assert known.ask("{ other }") == ["Cannot query field 'other' on type 'Query'."]
        with pytest.raises(GraphQLError, match="Syntax Error"):
            known.ask("{ a")


def test_long_texts_are_not_kept() -> None:
    known = Counting()
    for _ in range(2):
        assert known.ask("{ a" + " " * 2_000 + "}") == []
    assert (known.parsed, known.validated) == (2, 2)


def test_a_thousand_texts_are_told_apart() -> None:
    known = Counting()
    for _ in range(2):
        for n in range(500):
            assert known.ask(f"{{ a(n: {n}) }}") == []
            assert known.ask(f"{{ a(m: {n}) }}") != []
    assert len(known._valid) <= 64


def test_the_ui_that_is_installed_can_remember() -> None:
    from dagster_webserver import graphql  # noqa: PLC0415  # slow to import

    copy = ModuleType("copy")
    vars(copy).update(vars(graphql))
    remember_queries(copy)
    assert copy.parse("{ version }") is copy.parse("{ version }")
    with pytest.raises(RuntimeError, match="another way"):
        remember_queries(ModuleType("other"))
