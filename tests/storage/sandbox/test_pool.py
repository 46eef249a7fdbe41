"""The pool: lazy, bounded, one tenant a worker, gone with its owner."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from storage.domain.errors import InvalidConfig, LimitReached, Unavailable
from storage.engine.sandbox.pool import Pool
from tests.processes import command_of, is_alive
from tests.storage.sandbox.conftest import ATTACKER

ROOT = Path(__file__).parents[3]


def pid_of(pool: Pool, tenant: int) -> int:
    with pool.lease(ATTACKER, tenant) as worker:
        return worker.pid


def workers() -> set[int]:
    children = psutil.Process().children()
    return {child.pid for child in children if "sandbox.inside.worker" in command_of(child)}


def wait_until(true: object, seconds: float = 10.0) -> None:
    assert callable(true)
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def test_nothing_is_started_before_it_is_asked_for_and_nothing_is_left_after(pool: Pool) -> None:
    before = workers()
    assert before == workers()
    pool.ask(ATTACKER, 1, "result = 1")
    assert len(workers() - before) in {1, 2}
    pool.close()
    assert workers() == before
    with pytest.raises(Unavailable, match="closed"):
        pool.ask(ATTACKER, 1, "result = 1")


def test_a_worker_serves_its_tenant_again_and_no_other(pool: Pool) -> None:
    first = pid_of(pool, 1)
    assert pid_of(pool, 1) == first
    second = pid_of(pool, 2)
    assert second != first
    assert {pid_of(pool, tenant) for tenant in (1, 2, 1, 2)} == {first, second}


def test_one_tenant_never_sees_what_another_left(pool: Pool) -> None:
    def visit(number: int) -> set[int]:
        tenant = number % 5
        source = f"SEEN.append({tenant}); time.sleep(0.002); result = list(SEEN)"
        seen = set(pool.ask(ATTACKER, tenant, source)["result"])
        return seen - {tenant}

    with ThreadPoolExecutor(8) as threads:
        strangers = list(threads.map(visit, range(200)))
    assert not any(strangers)


def test_workers_are_replaced_after_their_share_of_requests(pool: Pool) -> None:
    kind = replace(ATTACKER, name="short-lived", requests=3)
    pids = [pool.ask(kind, 1, "result = os.getpid()")["result"] for _ in range(9)]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 3]


def test_a_lease_that_is_not_kept_ends_its_worker(pool: Pool) -> None:
    with pool.lease(ATTACKER, 1, keep=False) as worker:
        first = worker.pid
        worker.ask("SEEN.append(1)")
        assert worker.ask("result = SEEN")["result"] == [1]
    assert not psutil.pid_exists(first)
    assert pool.ask(ATTACKER, 1, "result = SEEN")["result"] == []


def test_there_are_never_more_than_allowed_and_a_tenant_may_hold_half() -> None:
    pool = Pool(most=2, wait_s=0.2)
    before = workers()
    try:
        with pool.lease(ATTACKER, 1):
            with pytest.raises(Unavailable, match="busy"), pool.lease(ATTACKER, 1):
                pass
            with pool.lease(ATTACKER, 2):
                assert len(workers() - before) == 2
                with pytest.raises(Unavailable, match="busy"), pool.lease(ATTACKER, 3):
                    pass
            # the idle worker of another tenant makes room
            with pool.lease(ATTACKER, 3):
                assert len(workers() - before) == 2
    finally:
        pool.close()


def test_whoever_waits_is_served_when_a_worker_is_given_back() -> None:
    pool = Pool(most=2, wait_s=20)
    try:
        with ThreadPoolExecutor(6) as threads:
            asked = [
                threads.submit(pool.ask, ATTACKER, tenant, "time.sleep(0.02); result = 1")
                for tenant in (1, 2, 3) * 5
            ]
            assert [future.result()["result"] for future in asked] == [1] * 15
    finally:
        pool.close()


def test_a_worker_killed_while_idle_is_not_noticed(pool: Pool) -> None:
    first = pid_of(pool, 1)
    os.kill(first, signal.SIGKILL)
    time.sleep(0.05)
    assert pool.ask(ATTACKER, 1, "result = 1") == {"result": 1}


def test_a_worker_killed_at_work_fails_its_request_alone(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as threads:
        pid = pid_of(pool, 1)
        failing = threads.submit(pool.ask, ATTACKER, 1, "time.sleep(0.5)")
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(LimitReached, match="the system ended it"):
            failing.result()
    assert pool.ask(ATTACKER, 1, "result = 1") == {"result": 1}


def test_an_exchange_broken_off_ends_the_worker(pool: Pool) -> None:
    class BrokenOff(Exception):
        pass

    def break_off(*, at_rest: bool) -> int:
        pid = 0
        try:
            with pool.lease(ATTACKER, 1) as worker:
                pid, worker.at_rest = worker.pid, at_rest
                raise BrokenOff  # noqa: TRY301  in the middle of the block, as a caller would
        except BrokenOff:
            return pid

    assert not psutil.pid_exists(break_off(at_rest=False))
    assert break_off(at_rest=True) == pid_of(pool, 1)


def test_a_request_that_is_too_large_does_not_cost_the_worker(pool: Pool) -> None:
    pid = pid_of(pool, 1)
    with pytest.raises(InvalidConfig, match="too large"):
        pool.ask(ATTACKER, 1, "x" * (17 << 20))
    assert pid_of(pool, 1) == pid


def test_idle_workers_are_ended_after_a_while() -> None:
    pool = Pool(idle_s=0.2)
    try:
        before = workers()
        pool.ask(ATTACKER, 1, "result = 1")
        wait_until(lambda: workers() == before)
        assert pool.ask(ATTACKER, 1, "result = 1") == {"result": 1}
    finally:
        pool.close()


def test_a_pool_that_stays_ready_keeps_a_fresh_worker_over_a_pause() -> None:
    pool = Pool(idle_s=0.2, stays_ready=True)
    try:
        before = workers()
        served = pid_of(pool, 1)
        wait_until(lambda: served not in workers() and len(workers() - before) == 1)
        time.sleep(0.5)
        (fresh,) = workers() - before
        assert pid_of(pool, 2) == fresh
    finally:
        pool.close()
    assert workers() == before


def test_a_copy_made_by_a_fork_neither_uses_nor_ends_the_workers() -> None:
    script = (
        "import os\n"
        "from storage.domain.errors import Unavailable\n"
        "from storage.engine.sandbox.kinds import JINJA2\n"
        "from storage.engine.sandbox.pool import Pool\n"
        "pool = Pool(); ask = lambda: pool.ask(JINJA2, 1, {'texts': ['x'], 'rows': [{}]})\n"
        "ask()\n"
        "if os.fork() == 0:\n"
        "    try: ask()\n"
        "    except Unavailable: pool.close(); os._exit(7)\n"
        "    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.wait()[1]), ask()); pool.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "7 [['x']]\n", done.stderr


@pytest.mark.parametrize("work", ["while True: pass", "time.sleep(100)", None])
def test_workers_die_with_their_owner_however_it_dies(work: str | None) -> None:
    script = (
        "import sys, threading, time\n"
        "from tests.storage.sandbox.conftest import ATTACKER\n"
        "from dataclasses import replace\n"
        "from storage.engine.sandbox.pool import Pool\n"
        "kind = replace(ATTACKER, wall_s=60.0)\n"
        "pool = Pool()\n"
        "with pool.lease(kind, 1) as worker:\n"
        "    print(worker.pid, flush=True)\n"
        f"    worker.ask({work!r}) if {work!r} else time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        time.sleep(0.1)
        worker = psutil.Process(pid)
        owner.kill()
        owner.wait()
        wait_until(lambda: not is_alive(worker), 5)


def test_a_worker_outlives_the_thread_that_asked_for_it(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as threads:
        pid = threads.submit(pid_of, pool, 1).result()
    time.sleep(0.05)
    assert pid_of(pool, 1) == pid


def test_a_tenant_cannot_queue_without_end_behind_its_own_slow_work() -> None:
    pool = Pool(most=2, wait_s=20)
    threads = ThreadPoolExecutor(2)
    try:
        with pool.lease(ATTACKER, 1):
            waiting = [threads.submit(pool.ask, ATTACKER, 1, "result = 1") for _ in range(2)]
            time.sleep(0.4)
            started = time.monotonic()
            with pytest.raises(Unavailable, match="of the workspace are busy"):
                pool.ask(ATTACKER, 1, "result = 1")
            assert time.monotonic() - started < 10
            assert pool.ask(ATTACKER, 2, "result = 2") == {"result": 2}
        assert [future.result() for future in waiting] == [{"result": 1}] * 2
    finally:
        threads.shutdown()
        pool.close()
