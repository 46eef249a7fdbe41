"""What Dagster is told of the columns of a recalculation: counts, and nothing of rows, prompts or answers."""

import pytest
from dagster import MarkdownMetadataValue, TableMetadataValue

from pipelines.defs.column_records import metadata_of_column
from storage.domain.keys import Principal
from storage.store import Store
from tests.recalculating import Bench

ECHO = {"provider": "stub", "model": "echo"}


@pytest.fixture
def bench(store: Store, who: Principal) -> Bench:
    return Bench(store, who, ["Q"], [["secret one"], ["secret [[stub:quota]]"], ["secret one"]])


def test_a_column_is_told_with_counts_errors_and_latencies(bench: Bench) -> None:
    operation = bench.add("A", "llm", prompt="{Q}", engine=ECHO).operation
    outcome = bench.run(operation)
    (record,) = outcome.columns
    assert record.facts["rows"] == 3
    assert (record.facts["computed"], record.facts["cached"], record.facts["failed"]) == (1, 1, 1)
    assert record.errors == {"PROVIDER_QUOTA_LIMIT": 1}
    assert sum(record.latencies.values()) == 2
    told = metadata_of_column(record)
    assert isinstance(told["errors"], TableMetadataValue)
    assert [dict(row.data) for row in told["errors"].records] == [
        {"error": "PROVIDER_QUOTA_LIMIT", "cells": 1}
    ]
    assert isinstance(told["latencies"], MarkdownMetadataValue)
    assert "█" in told["latencies"].value
    assert "secret" not in str(told)


def test_each_column_of_a_run_is_told_also_one_that_was_unchanged(bench: Bench) -> None:
    bench.run(bench.add("Same", "composition", source="Q").operation)
    bench.run(bench.add("Two", "comparison", sources=["Same", "Q"]).operation)
    bench.change("Two", config={"sources": ["Same"], "target": "x"})
    outcome = bench.run(bench.start(statuses=()).operation)
    assert [record.type for record in outcome.columns] == ["composition", "comparison"]
    assert [record.facts["cached"] for record in outcome.columns] == [3, 0]
