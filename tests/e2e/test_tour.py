"""The README's tour, word for word, against a real service."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.bench.service import Service, running

ROOT = Path(__file__).parents[2]
DEMO = re.compile(r"<!-- demo -->\n```sh\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"<!-- tour -->\n```sh\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each block of the tour prints, all pasted into one shell."""
    with running(tmp_path_factory.mktemp("tour") / "home") as service:
        text = (ROOT / "README.md").read_text()
        return pasted(service, [*BLOCK.findall(text), *DEMO.findall(text)])


def pasted(service: Service, blocks: list[str]) -> list[str]:
    mark = "-- end of block --"
    script = "".join(f"{block}\necho '\n{mark}'\n" for block in blocks)
    shell = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env={**os.environ, "BASE": service.url, "PROMPTLAKE_HOME": str(service.home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert shell.returncode == 0, shell.stdout + shell.stderr
    return shell.stdout.split(mark)[:-1]


def test_the_tour_logs_imports_and_reads_back(told: list[str]) -> None:
    ready, logged, queried, queued, polled, rows = told[:6]
    assert '"ready"' in ready
    assert '"request_id"' in logged
    assert "gpt-4o-mini" in queried
    assert "1250" in queried
    assert '"queued"' in queued
    assert '"succeeded"' in polled
    assert "Korea, Republic of" in rows


def test_the_demo_measures_a_prompt_changes_it_and_measures_again(told: list[str]) -> None:
    imported, first, changed, second = told[6:]
    assert imported.strip() == "8"
    assert '"score": 0.375' in first
    assert '{"completed": 24, "stale": 16}' in changed
    assert '"estimated_tokens": 56' in changed
    assert second.count('"score": 0.875') >= 2
    assert '"score": 0.375' in second
