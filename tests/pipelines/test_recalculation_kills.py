"""kill -9 while a column is computed and between the steps of its commit: the next attempt goes on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import storage.recalculation_commit as steps
from pipelines.recalculation import recalculate
from storage.domain.keys import Principal
from storage.operations import get_operation, raise_attempt, settle_ended_run
from storage.settings import Settings
from storage.store import Store, open_store
from storage.verification import verify_sheet
from tests.recalculating import Bench, Counting

STEPS = ("", "insert_segments", "with_results", "mark_dependents", "commit", "set_fingerprint")
MANY = 11_000


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_until(home: str, no: int, step: str) -> None:
    """Run the first attempt and die at a step; "" means while the second column is computed."""
    store = open_store(Settings(home=Path(home)))
    seen: list[int] = []

    def before(_: object) -> None:
        seen.append(1)
        if not step and len(seen) > 1:
            die()

    if step:
        setattr(steps, step, die)
    recalculate(store, no, 1, "run-1", lambda _: None, Counting(before).runners)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_recalculation_goes_on(store: Store, settings: Settings, who: Principal, step: str) -> None:
    rows = [[str(n), str(n)] for n in range(MANY)]
    bench = Bench(store, who, ["A", "B"], rows)
    one = bench.add("One", "comparison", sources=["A", "B"])
    two = bench.add("Two", "composition", source="One")
    assert one.operation is not None
    assert two.operation is not None
    bench.run(one.operation)
    bench.run(two.operation)
    bench.change("One", config={"sources": ["A"], "target": "7"})
    operation = bench.start().operation
    code = "import sys; from tests.pipelines.test_recalculation_kills import run_until as r; "
    code += "r(sys.argv[1], int(sys.argv[2]), sys.argv[3])"
    arguments = [str(settings.root), str(operation.no), step]
    died = subprocess.run([sys.executable, "-c", code, *arguments], check=False, timeout=100)
    assert died.returncode == -signal.SIGKILL
    assert verify_sheet(store, bench.sheet_no) == []
    # what the sensor does when it finds the run dead
    settle_ended_run(store, operation.no, 1, "run-1", cancelled=False)
    again = get_operation(store, operation.no)
    assert (again.status, again.attempt) == ("queued", 2)
    recalculate(store, operation.no, 2, "run-2", lambda _: None, Counting().runners)
    values = [cell.value for cell in bench.cells("Two", 0, MANY)]
    assert values == [n == 7 for n in range(MANY)]
    assert bench.poll(operation).operation.status == "completed"
    assert verify_sheet(store, bench.sheet_no) == []


def test_a_run_that_dies_each_time_ends_failed(store: Store, who: Principal) -> None:
    bench = Bench(store, who, ["A"], [["1"]])
    operation = bench.add("Copy", "composition", source="A").operation
    assert operation is not None
    from storage.operations import claim  # noqa: PLC0415

    for attempt in range(1, 6):
        claim(store, operation.no, attempt, f"run-{attempt}")
        settle_ended_run(store, operation.no, attempt, f"run-{attempt}", cancelled=False)
    assert get_operation(store, operation.no).status == "failed"
    assert bench.statuses("Copy") == ["stale"]
    assert not raise_attempt(store, operation.no, 5)
