"""What Dagster is told of one computed column: counts and ids, its commonest errors, a histogram."""

from collections.abc import Mapping
from math import inf

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from pipelines.work import ColumnRecord

_MOST_ERRORS = 10
_LONGEST_BAR = 40


def metadata_of_column(record: ColumnRecord) -> dict[str, MetadataValue]:
    """Spell what a run did for a column as metadata of a materialization; no titles, no content."""
    found: dict[str, MetadataValue] = {
        "column_id": MetadataValue.text(record.column_id),
        "type": MetadataValue.text(record.type),
        **{name: value_of(fact) for name, fact in record.facts.items()},
    }
    if record.errors:
        commonest = sorted(record.errors.items(), key=lambda one: -one[1])[:_MOST_ERRORS]
        rows = [TableRecord({"error": code, "cells": count}) for code, count in commonest]
        columns = [TableColumn("error", "string"), TableColumn("cells", "int")]
        found["errors"] = MetadataValue.table(rows, TableSchema(columns))
    if record.latencies:
        found["latencies"] = MetadataValue.md(_histogram(record.latencies))
    return found


def value_of(fact: float | str) -> MetadataValue:
    """Spell a fact as a value of metadata."""
    if isinstance(fact, str):
        return MetadataValue.text(fact)
    return MetadataValue.int(fact) if isinstance(fact, int) else MetadataValue.float(fact)


def _histogram(latencies: Mapping[str, int]) -> str:
    """Draw a bar a bound."""
    most = max(latencies.values())
    bounds = sorted(latencies, key=lambda bound: float(bound) if bound.isdigit() else inf)
    lines = [
        f"{bound:>6} {'█' * max(1, round(_LONGEST_BAR * latencies[bound] / most))} {latencies[bound]}"
        for bound in bounds
    ]
    return "Cells by what their calls took, up to so many ms:\n```\n" + "\n".join(lines) + "\n```"
