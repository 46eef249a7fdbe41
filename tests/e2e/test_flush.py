"""Logs become segments by a run of Dagster, which tells counts and the schema but no content."""

from pathlib import Path

import pytest

from tests.logs import exchange
from tests.stack import Stack, running, wait_for

FOUND = """{ assetNodeOrError(assetKey: {path: ["request_log_segments"]}) { ... on AssetNode {
  assetMaterializations(limit: 1) { runId metadataEntries { label
    ... on IntMetadataEntry { intValue }
    ... on TableSchemaMetadataEntry { schema { columns { name } } } } } } } }"""
CHECKS = """{ assetNodeOrError(assetKey: {path: ["request_log_segments"]}) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks { name } } } } } }"""


def test_logs_are_flushed_by_a_run_that_tells_counts_and_schema(stack: Stack) -> None:
    for _ in range(5):
        assert stack.api.post("/log-request", json=exchange()).status_code == 201

    def found() -> list[dict[str, object]]:
        return stack.graphql(FOUND)["assetNodeOrError"]["assetMaterializations"]

    wait_for(found, 40, "a flush")
    entries = {entry["label"]: entry for entry in found()[0]["metadataEntries"]}
    # others that use this service log, too
    assert entries["rows"]["intValue"] >= 5
    assert entries["bytes"]["intValue"] > 0
    assert {column["name"] for column in entries["dagster/column_schema"]["schema"]["columns"]} >= {"id"}
    events = stack.events(str(found()[0]["runId"]))
    assert "spider" not in str(events)
    checks = stack.graphql(CHECKS)["assetNodeOrError"]["assetChecksOrError"]["checks"]
    assert {check["name"] for check in checks} >= {"log_segments_are_whole", "logs_are_flushed"}


RUNS = """{ runsOrError(filter: {pipelineName: "flush_request_logs"}) { ... on Runs { results {
  tags { key } } } } }"""


@pytest.mark.slow
def test_when_many_logs_come_at_once_no_sensor_is_waited_for(tmp_path: Path) -> None:
    env = {"PROMPTLAKE_FLUSH_AFTER_S": "3600", "PROMPTLAKE_FLUSH_BYTES": "100000"}
    with running(tmp_path / "home", env=env) as stack:
        stack.wait_ready()
        log = exchange(metadata={"filler": "x" * 600})
        for _ in range(65):  # enough for a flush at once, too little for the sensor
            assert stack.api.post("/log-request", json=log).status_code == 201

        def runs() -> list[dict[str, object]]:
            return stack.graphql(RUNS)["runsOrError"]["results"]

        wait_for(runs, 10, "a flush")
        (run,) = runs()
        assert "dagster/sensor_name" not in {tag["key"] for tag in run["tags"]}
        wait_for(lambda: list(stack.home.glob("data/logs/1/**/*.parquet")), 10, "a segment")
