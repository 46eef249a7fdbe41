"""Two runs in two processes: what both ask is asked once, and together they keep the limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.columns.registry import RUNNERS
from pipelines.recalculation import recalculate
from storage.domain.keys import Principal
from storage.settings import Settings
from storage.store import Store, open_store
from tests.model_server import ModelServer
from tests.recalculating import Bench

AT_ONCE = 3


def run(home: str, no: int) -> None:
    store = open_store(Settings(home=Path(home), model_calls=AT_ONCE))
    print("ready", flush=True)
    sys.stdin.readline()
    recalculate(store, no, 1, "run-1", lambda _: None, RUNNERS)


@pytest.mark.slow
def test_processes_share_results_and_limits(
    store: Store, settings: Settings, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(delay_s=0.05) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        rows = [[f"q {n}"] for n in range(120)]
        benches = [Bench(store, who, ["Q"], rows), Bench(store, who, ["Q"], rows[::-1])]
        engine = {"provider": "openai", "model": "m"}
        operations = [bench.add("A", "llm", prompt="{Q}", engine=engine).operation for bench in benches]
        code = "import sys; from tests.pipelines.test_model_sharing import run; "
        code += "run(sys.argv[1], int(sys.argv[2]))"
        children = [
            subprocess.Popen(
                [sys.executable, "-c", code, str(settings.root), str(operation.no)],
                env=dict(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for operation in operations
            if operation is not None
        ]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            child.communicate(timeout=60)
        assert [child.wait(60) for child in children] == [0, 0]
    assert len(server.calls) == 120
    assert set(server.calls.values()) == {1}
    assert server.most_open <= AT_ONCE
    for bench, expected in zip(benches, (rows, rows[::-1]), strict=True):
        assert bench.values("A") == [row[0] for row in expected]
    # both worked: neither waited for the other to end
    assert all(0 < sum(not cell.state.cached for cell in bench.cells("A")) < 120 for bench in benches)
