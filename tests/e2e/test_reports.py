"""kill -9 of the process that computes a report: the run goes on, and what was answered is not paid again."""

import base64
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests import stack as stacks
from tests.e2e.test_operations import RUNS
from tests.model_server import ModelServer
from tests.stack import Stack, wait_for

ROWS, AT_ONCE = 400, 8
V2 = "/api/public/v2"
COLUMNS: list[dict[str, Any]] = [
    {"title": "Same", "type": "comparison", "config": {"sources": ["q"], "target": "q 7"}},
    {
        "title": "Answer",
        "type": "llm",
        "config": {"prompt": "{q}", "engine": {"provider": "openai", "model": "m"}},
    },
    {"title": "Again", "type": "comparison", "config": {"sources": ["q", "Answer"]}},
]


def start_report(stack: Stack) -> int:
    """Make a dataset and a report over it; return the id of its run, under way."""
    group = stack.api.post(f"{V2}/dataset-groups", json={"name": "Q"}).json()["dataset_group"]["id"]
    content = "q\n" + "".join(f"q {n}\n" for n in range(ROWS))
    file = {"file_name": "q.csv", "file_content_base64": base64.b64encode(content.encode()).decode()}
    body = {"dataset_group_id": group}
    dataset = stack.api.post(f"{V2}/dataset-versions/from-file", json={**body, **file}).json()["dataset_id"]

    def is_saved() -> bool:
        found = stack.api.get(f"{V2}/datasets/{dataset}").json()["dataset"]
        return bool(found["version_number"] == 1)

    wait_for(is_saved, 60, "the dataset")
    made = stack.api.post("/reports", json={**body, "name": "R", "columns": COLUMNS})
    assert made.status_code == 201, made.text
    run = stack.api.post(f"/reports/{made.json()['report']['id']}/run", json={"name": "killed"})
    assert run.status_code == 201, run.text
    return int(run.json()["report_id"])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_report_whose_process_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    with ModelServer(delay_s=0.1) as model:
        env = {
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": model.url,
            "PROMPTLAKE_MODEL_CALLS": str(AT_ONCE),
        }
        with stacks.running(tmp_path / "home", env=env) as stack:
            report = start_report(stack)

            def read() -> dict[str, Any]:
                return dict(stack.api.get(f"/reports/{report}").json()["report"])

            wait_for(lambda: len(model.calls) > ROWS // 3, 60, "a third of the calls")
            (running,) = [
                run
                for run in stack.graphql(RUNS, t=[{"key": "kind", "value": "recalculate"}])["runsOrError"][
                    "results"
                ]
                if run["status"] == "STARTED"
            ]
            os.kill(stack.process_of(running["runId"]), signal.SIGKILL)
            paid = len(model.calls)
            assert paid < ROWS
            wait_for(lambda: read()["status"] in {"completed", "failed", "cancelled"}, 120, "the end")
            done = read()
            assert done["status"] == "completed"
            assert done["status_counts"] == {"completed": len(COLUMNS) * ROWS}
            rows = stack.api.get(f"/reports/{report}/rows", params={"limit": ROWS}).json()["data"]
            tags = [{"key": "kind", "value": "recalculate"}]
            ends = [run["status"] for run in stack.graphql(RUNS, t=tags)["runsOrError"]["results"]]
    assert [row["cells"]["Answer"]["value"] for row in rows] == [f"q {n}" for n in range(ROWS)]
    assert all(row["cells"]["Again"]["value"] is True for row in rows)
    assert sorted(ends) == ["FAILURE", "SUCCESS"]
    # nothing was asked twice but what was in flight, and what came in the last tenth of a second
    assert max(model.calls.values()) <= 2
    assert sum(count == 2 for count in model.calls.values()) <= 2 * AT_ONCE
