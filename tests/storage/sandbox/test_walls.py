import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from storage import sandbox
from storage.domain.errors import LimitReached, Unavailable, Unguarded
from storage.domain.walls import fallen
from storage.engine.sandbox.kinds import JAVASCRIPT, JINJA2, JINJA2_ROWS, PYTHON, SQL, Kind
from storage.engine.sandbox.pool import Pool
from tests.storage.sandbox.conftest import ATTACKER, kind_of

ROOT = Path(__file__).parents[3]

WALLS = {
    *("environment", "frames", "user", "owner", "limits", "system calls", "files", "network"),
    *("descriptors", "processes", "kernel", "children", "reading", "code", "end"),
}


def test_a_worker_proves_every_wall_before_it_is_asked_anything(pool: Pool) -> None:
    walls = pool.walls(JINJA2)
    assert {wall.name for wall in walls} == WALLS
    assert fallen(walls) == ()


def test_the_kernel_says_the_same_from_outside(pool: Pool) -> None:
    with pool.lease(ATTACKER, 1) as worker:
        status = Path(f"/proc/{worker.pid}/status").read_text()
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert facts["Seccomp"] == "2"
        assert facts["NoNewPrivs"] == "1"
        assert facts["Threads"] == "1"
        assert "0" not in facts["Uid"].split()
        if os.getuid() == 0:
            assert len(list(Path(f"/proc/{worker.pid}/fd").iterdir())) == 2
            assert Path(f"/proc/{worker.pid}/environ").read_bytes().replace(b"\0", b"") == b""
            mapped = [line.split()[1] for line in Path(f"/proc/{worker.pid}/maps").read_text().splitlines()]
            assert not [rights for rights in mapped if "w" in rights and "x" in rights]


def test_without_the_filter_every_wall_of_it_falls_and_nothing_is_evaluated(pool: Pool) -> None:
    kind = kind_of("no_filter")
    down = {wall.name for wall in fallen(pool.walls(kind))}
    assert {"files", "network", "descriptors", "processes", "kernel", "children", "reading", "code"} <= down
    with pytest.raises(Unguarded, match=r"does not hold on this machine.*fork is not refused"):
        pool.ask(kind, 1, "hello")


def test_a_kernel_without_the_filter_is_named_as_the_reason(pool: Pool) -> None:
    with pytest.raises(Unguarded, match="system calls: seccomp: Function not implemented"):
        pool.ask(kind_of("no_kernel"), 1, "hello")


def test_another_system_is_named_as_the_reason(pool: Pool) -> None:
    with pytest.raises(Unguarded, match="only Linux on x86_64 and aarch64"):
        pool.ask(kind_of("elsewhere"), 1, "hello")


def test_one_hole_is_found_and_named(pool: Pool) -> None:
    with pytest.raises(Unguarded, match=r"not refused: openat.*opening / is not refused"):
        pool.ask(kind_of("one_hole"), 1, "hello")


def test_a_refusal_is_remembered_and_other_kinds_go_on(pool: Pool) -> None:
    kind = kind_of("no_kernel")
    for _ in range(2):
        with pytest.raises(Unguarded):
            pool.ask(kind, 1, "hello")
    assert pool.ask(ATTACKER, 1, "result = 1") == {"result": 1}


def test_an_evaluator_that_cannot_start_is_unavailable(pool: Pool) -> None:
    with pytest.raises(Unavailable, match=r"sandbox worker \(broken\) did not start"):
        pool.ask(kind_of("broken"), 1, "hello")


def test_a_mistake_of_an_evaluator_is_told_without_its_words(pool: Pool) -> None:
    with pytest.raises(LimitReached, match=r"its evaluator failed on it$"):
        pool.ask(kind_of("mistaken"), 1, "a secret value")


def test_doctor_is_told_which_walls_stand_and_what_follows_where_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = sandbox.check_sandbox()
    assert [finding.state for finding in found] == ["ok"] * 4
    assert [finding.sentence.split(" ")[0] for finding in found[1:]] == ["PYTHON", "JAVASCRIPT", "SQL"]
    monkeypatch.setattr(sandbox, "JINJA2", kind_of("no_kernel"))
    (finding,) = sandbox.check_sandbox()
    assert (finding.state, finding.part) == ("warning", "sandbox")
    assert "Function not implemented" in finding.sentence
    assert "jinja2 templates and code columns are refused" in finding.advice
    monkeypatch.setattr(sandbox, "JINJA2", kind_of("broken"))
    (finding,) = sandbox.check_sandbox()
    assert "did not start" in finding.sentence


def test_doctor_is_told_which_engine_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = replace(SQL, requires=("duckdb_that_is_gone",))
    monkeypatch.setattr(sandbox, "_KINDS", {**sandbox._KINDS, "SQL": missing})
    *_, finding = sandbox.check_sandbox()
    assert (finding.state, finding.advice) == ("warning", "SQL columns are refused; others work.")
    assert "duckdb_that_is_gone" in finding.sentence


@pytest.mark.parametrize("kind", [PYTHON, JAVASCRIPT, SQL, JINJA2_ROWS], ids=lambda kind: kind.name)
def test_every_engine_stands_behind_every_wall(pool: Pool, kind: Kind) -> None:
    with pool.lease(kind, 1) as worker:
        assert {wall.name for wall in worker.walls()} == WALLS
        status = Path(f"/proc/{worker.pid}/status").read_text()
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert (facts["Seccomp"], facts["Threads"]) == ("2", "1")


def test_the_walls_stand_for_a_user_without_rights_too() -> None:
    if os.getuid() != 0:
        pytest.skip("this whole run is by such a user")
    needed = [ROOT, Path(sys.executable), Path(sys.executable).resolve()]
    if not all(path.stat().st_mode & 0o005 for one in needed for path in (one, *one.parents)):
        pytest.skip("another user cannot read this checkout")
    script = (
        "from storage.engine.sandbox.kinds import JINJA2; from storage.engine.sandbox.pool import Pool\n"
        "from storage.domain.walls import fallen\n"
        "pool = Pool(); assert not fallen(pool.walls(JINJA2)); pool.close(); print('stands')"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", script],
        cwd=ROOT,
        user=65534,
        group=65534,
        extra_groups=[],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "stands\n", done.stderr
