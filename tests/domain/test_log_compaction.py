"""Which files become one: neighbours of a day, no larger than allowed, and the work comes to an end."""

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.log_compaction import MERGE_FILES, MOST_BYTES, Piece, plan_runs, tier_of

TODAY = date(2026, 1, 5)
YESTERDAY = TODAY - timedelta(days=1)
MIB = 1_048_576

days = st.sampled_from([YESTERDAY - timedelta(days=1), YESTERDAY, TODAY])
pieces = st.lists(
    st.builds(
        Piece,
        days,
        st.integers(1, MOST_BYTES * 2) | st.integers(1, 2 * MIB),
        st.booleans(),
        st.booleans(),
    ),
    max_size=60,
).map(lambda some: sorted(some, key=lambda piece: piece.day))


@given(pieces)
def test_runs_are_neighbours_of_one_day_that_fit_in_a_file(some: list[Piece]) -> None:
    runs = plan_runs(some, TODAY)
    places = [place for run in runs for place in run]
    assert places == sorted(set(places))
    for run in runs:
        assert len({some[place].day for place in run}) == 1
        assert len(run) == 1 or sum(some[place].bytes for place in run) <= MOST_BYTES
        assert len(run) > 1 or some[run.start].dirty


@given(pieces)
def test_every_dirty_file_is_rewritten(some: list[Piece]) -> None:
    taken = {place for run in plan_runs(some, TODAY) for place in run}
    assert {place for place, piece in enumerate(some) if piece.dirty} <= taken


@given(pieces)
def test_the_work_comes_to_an_end(some: list[Piece]) -> None:
    left = [Piece(piece.day, piece.bytes) for piece in some]
    for _ in range(len(left) + 1):
        runs = plan_runs(left, TODAY)
        if not runs:
            break
        merged = {run.start: Piece(left[run.start].day, sum(left[p].bytes for p in run)) for run in runs}
        inner = {place for run in runs for place in run[1:]}
        left = [merged.get(place, piece) for place, piece in enumerate(left) if place not in inner]
    assert plan_runs(left, TODAY) == []
    closed = [piece for piece in left if piece.day == YESTERDAY]
    assert all(a.bytes + b.bytes > MOST_BYTES for a, b in pairwise(closed))


def test_today_files_wait_until_there_are_enough_of_a_size() -> None:
    few = [Piece(TODAY, 1000)] * (MERGE_FILES - 1)
    assert plan_runs(few, TODAY) == []
    assert plan_runs([*few, Piece(TODAY, 1000)], TODAY) == [range(MERGE_FILES)]
    assert plan_runs(few, TODAY + timedelta(days=1)) == [range(MERGE_FILES - 1)]


def test_fresh_files_wait_until_one_of_them_is_not() -> None:
    fresh = [Piece(TODAY, 1000, fresh=True)] * MERGE_FILES
    assert plan_runs(fresh, TODAY) == []
    assert plan_runs([Piece(TODAY, 1000), *fresh], TODAY) == [range(MERGE_FILES + 1)]
    assert plan_runs(fresh, TODAY + timedelta(days=1)) == [range(MERGE_FILES)]


def test_a_log_of_a_busy_day_is_rewritten_a_few_times_only() -> None:
    files: list[int] = []
    written = flushed = 0
    for _ in range(2880):  # a flush every half minute
        files.append(MIB // 4)
        flushed += MIB // 4
        for run in reversed(plan_runs([Piece(TODAY, size) for size in files], TODAY)):
            merged = sum(files[place] for place in run)
            written += merged
            files[run.start : run.stop] = [merged]
    assert written / flushed < 5
    assert len(files) < 60
    assert max(tier_of(size) for size in files) >= 1
