"""Logs become segments by a run of Dagster, which tells counts and the schema but no content."""

from tests.logs import exchange
from tests.stack import Stack, wait_for

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
