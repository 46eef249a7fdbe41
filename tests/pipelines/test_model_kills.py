"""kill -9 in the middle of model calls: what was answered is not paid again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.columns.registry import RUNNERS
from pipelines.recalculation import recalculate
from storage.domain.keys import Principal
from storage.operations import settle_ended_run
from storage.settings import Settings
from storage.store import Store, open_store
from tests.model_server import ModelServer
from tests.recalculating import Bench

AT_ONCE = 16


def run(home: str, no: int, places: int) -> None:
    store = open_store(Settings(home=Path(home), model_calls=places))
    recalculate(store, no, 1, "run-1", lambda _: None, RUNNERS)


@pytest.mark.parametrize(
    ("rows", "temperature"),
    [
        (600, 0),
        pytest.param(600, 1, marks=pytest.mark.slow),
        pytest.param(5_000, 0, marks=pytest.mark.slow),
        pytest.param(5_000, 1, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_killed_run_pays_few_calls_twice(
    store: Store,
    settings: Settings,
    who: Principal,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    temperature: int,
) -> None:
    with ModelServer(delay_s=0.01) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        bench = Bench(store, who, ["Q"], [[f"q {n}"] for n in range(rows)])
        engine = {"provider": "openai", "model": "m", "parameters": {"temperature": temperature}}
        operation = bench.add("A", "llm", prompt="{Q}", engine=engine).operation
        assert operation is not None
        code = "import sys; from tests.pipelines.test_model_kills import run; "
        code += "run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))"
        arguments = [str(settings.root), str(operation.no), str(AT_ONCE)]
        child = subprocess.Popen([sys.executable, "-c", code, *arguments], env=dict(os.environ))
        until = time.monotonic() + 60
        while len(server.calls) < rows // 2 and time.monotonic() < until:
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        assert child.wait(20) == -signal.SIGKILL
        paid = len(server.calls)
        assert rows // 2 <= paid < rows
        settle_ended_run(store, operation.no, 1, "run-1", cancelled=False)
        recalculate(store, operation.no, 2, "run-2", lambda _: None, RUNNERS)
    assert bench.poll(operation).operation.status == "completed"
    assert [cell.value for cell in bench.cells("A", 0, rows)] == [f"q {n}" for n in range(rows)]
    assert max(server.calls.values()) <= 2
    # those in flight, those that wait behind them, and those answered but not yet kept
    twice = sum(count == 2 for count in server.calls.values())
    assert twice <= 2 * AT_ONCE
    assert sum(server.calls.values()) == rows + twice
