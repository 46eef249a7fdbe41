"""What SQL says of a log is what the rules say of it."""

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.domain.filter_match import Subject, matches, matches_words
from storage.domain.filters import parse_filter_group
from storage.domain.words import query_words
from storage.engine.facet_sql import register_facets, with_facets
from storage.engine.filter_sql import SCORES_NOW, Condition, condition_of, words_condition
from storage.engine.log_body import encode_body
from storage.engine.log_sql import arrow_tail, duck, spread
from storage.engine.rows.log_tail import TailRow
from tests.filtering import GROUPS, SCORES, TEXTS, logs
from tests.logs import chat, stored_fields

LABELLED = {"prod": [(1, 1), (2, 2)], "dev": [(1, 1)]}


@pytest.fixture(scope="module")
def lake() -> Iterator[duckdb.DuckDBPyConnection]:
    with duck() as connection:
        register_facets(connection)
        connection.execute(f"CREATE TABLE {SCORES_NOW} (request_id BIGINT, name VARCHAR, score BIGINT)")
        yield connection


def labels_of(fields: dict[str, Any]) -> list[str]:
    version = (fields["prompt_id"], fields["prompt_version_number"])
    return [label for label, named in LABELLED.items() if version in named]


def found(lake: duckdb.DuckDBPyConnection, some: Sequence[dict[str, Any]], wanted: Condition) -> list[int]:
    rows = [TailRow(at, 1, 0, encode_body(fields)) for at, fields in enumerate(some, 1)]
    lake.register("rows_", arrow_tail(rows))
    query = f"SELECT id FROM ({with_facets(spread('rows_'))}) WHERE {wanted.sql} ORDER BY id"
    return [row[0] for row in lake.execute(query, wanted.parameters).fetchall()]


def said(
    lake: duckdb.DuckDBPyConnection, group: dict[str, Any], some: list[tuple[dict[str, Any], dict[str, int]]]
) -> tuple[list[int], list[int]]:
    lake.execute(f"DELETE FROM {SCORES_NOW}")
    for at, (_, scores) in enumerate(some, 1):
        for name, score in scores.items():
            lake.execute(f"INSERT INTO {SCORES_NOW} VALUES (?, ?, ?)", [at, name, score])
    asked = parse_filter_group(group)
    subjects = [Subject(at, fields, scores, labels_of(fields)) for at, (fields, scores) in enumerate(some, 1)]
    by_rule = [one.id for one in subjects if matches(asked, one)]
    return found(lake, [fields for fields, _ in some], condition_of(asked, LABELLED)), by_rule


@settings(max_examples=200, deadline=None)
@given(GROUPS, st.lists(st.tuples(logs(), SCORES), min_size=1, max_size=4))
def test_sql_finds_the_logs_that_match_by_rule(
    lake: duckdb.DuckDBPyConnection, group: dict[str, Any], some: list[tuple[dict[str, Any], dict[str, int]]]
) -> None:
    by_sql, by_rule = said(lake, group, some)
    assert by_sql == by_rule


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.lists(logs(), min_size=1, max_size=4))
@example(
    "use two", [stored_fields(input={"type": "completion", "content": [{"type": "text", "text": "two"}]})]
)
@example("straSSe", [stored_fields(output=chat("assistant", "Straße straẞe STRASSE"))])
def test_free_text_finds_by_sql_what_it_finds_by_rule(
    lake: duckdb.DuckDBPyConnection, q: str, some: list[dict[str, Any]]
) -> None:
    words = query_words(q)
    by_rule = [at for at, fields in enumerate(some, 1) if matches_words(words, Subject(at, fields, {}))]
    assert found(lake, some, words_condition(words)) == by_rule
