from pipelines.worker.lanes import Job, Lanes, Limits

LIMITS = Limits(short=2, compute=2, wait=10, total=8, reserved=2)


def lanes(*waiting: Job) -> Lanes:
    made = Lanes(LIMITS)
    for job in waiting:
        made.add(job)
    return made


def drain(made: Lanes) -> list[str]:
    taken = []
    while job := made.take():
        taken.append(job.run_id)
    return taken


def test_short_work_starts_before_long_work_that_came_first() -> None:
    made = lanes(Job("c", "compute", "a"), Job("s", "short", "a"))
    assert drain(made) == ["s", "c"]


def test_computing_runs_never_take_more_than_their_lane() -> None:
    made = lanes(*(Job(f"c{n}", "compute", "a") for n in range(5)))
    assert drain(made) == ["c0", "c1"]
    made.drop("c0")
    assert drain(made) == ["c2"]


def test_places_are_kept_for_short_work_however_much_waits() -> None:
    made = lanes(*(Job(f"w{n}", "wait", "a") for n in range(20)))
    assert len(drain(made)) == LIMITS.total - LIMITS.reserved
    made.add(Job("s", "short", "a"))
    made.add(Job("t", "short", "a"))
    assert drain(made) == ["s", "t"]


def test_tenants_take_turns_within_a_lane() -> None:
    made = lanes(
        *(Job(f"a{n}", "wait", "a") for n in range(3)), Job("b0", "wait", "b"), Job("b1", "wait", "b")
    )
    assert drain(made) == ["a0", "b0", "a1", "b1", "a2"]


def test_a_run_that_is_known_is_not_taken_in_twice() -> None:
    made = lanes(Job("s", "short", "a"), Job("s", "short", "a"))
    assert drain(made) == ["s"]
    made.add(Job("s", "short", "a"))
    assert made.waiting() == []
    assert made.drop("s") == Job("s", "short", "a")
    assert made.drop("s") is None


def test_as_many_processes_are_wanted_as_runs_may_start() -> None:
    made = lanes(*(Job(f"{lane}{n}", lane, "a") for lane in ("short", "compute", "wait") for n in range(9)))
    wanted = made.startable()
    assert wanted == len(drain(made)) == LIMITS.total
    assert made.startable() == 0


def test_a_run_without_a_known_lane_computes() -> None:
    assert Job.from_tags("r", {}).lane == "compute"
    assert Job.from_tags("r", {"lane": "fast", "workspace_id": "7"}) == Job("r", "compute", "7")


def test_eight_waiting_and_two_computing_runs_leave_room_for_short_ones() -> None:
    made = Lanes(Limits.of(processes=16, cores=2))
    for n in range(8):
        made.add(Job(f"w{n}", "wait", "a"))
    for n in range(2):
        made.add(Job(f"c{n}", "compute", "a"))
    assert len(drain(made)) == 10
    made.add(Job("s", "short", "b"))
    assert drain(made) == ["s"]
