"""Patches laid on each other, merged or not, kept as bytes or not, leave the same cells."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.cells import COMPLETED, CellState, restated
from storage.domain.manifests import Fill, Manifest, Part
from storage.domain.overlay import (
    KEPT,
    Entry,
    NumberedPatch,
    Overlay,
    Patch,
    Restated,
    count_to_merge,
    merged,
)
from storage.engine.overlay_codec import decode_patch, encode_patch
from storage.engine.sheet_rows import Written, read_columns
from storage.engine.snapshots import Snapshot

BORN = datetime(2026, 1, 1, tzinfo=UTC)
STATES = [
    COMPLETED,
    CellState("stale"),
    CellState(input_hash="7a", execution_id="run"),
    CellState("failed", error="timeout", error_message="It took long"),
]
times = st.sampled_from([datetime(2026, 1, day, 3, 4, 5, day, tzinfo=UTC) for day in range(2, 6)])
states = st.sampled_from(STATES)
values = st.sampled_from(["", "text", None, 1, 1.5, True, {"a": [1, None]}, "\0"])
entries = st.builds(Entry, values | st.just(KEPT), times, states)
patches = st.builds(
    Patch,
    st.dictionaries(
        st.integers(1, 3), st.dictionaries(st.integers(1, 8), entries, min_size=1, max_size=5), max_size=3
    ),
    st.dictionaries(st.integers(1, 3), st.builds(Restated, states, st.integers(1, 9)), max_size=2),
)


def restates_in_order(found: list[Patch]) -> list[Patch]:
    """Row numbers never go back, so neither does the counter that a later patch saw."""
    ends: dict[int, int] = {}
    ordered = []
    for patch in found:
        changed = {}
        for no, one in patch.restated.items():
            ends[no] = max(ends.get(no, 0), one.end_row_no)
            changed[no] = Restated(one.state, ends[no])
        ordered.append(Patch(patch.cells, changed))
    return ordered


def read(found: list[Patch]) -> list[list[Written]]:
    fills = {no: Fill(f"born {no}") for no in (1, 2, 3)}
    manifest = Manifest((Part(1, 3, fills, BORN), Part(5, 4, fills, BORN)))
    overlay = Overlay(tuple(NumberedPatch(no, patch, 1) for no, patch in enumerate(found)))
    reader: Any = None  # nothing is stored
    return read_columns(reader, Snapshot(1, 1, None, manifest, overlay, 1), [1, 2, 3], 0, 99)


def by_hand(found: list[Patch]) -> list[list[Written]]:
    rows = [1, 2, 3, 5, 6, 7, 8]
    cells: dict[tuple[int, int], tuple[Any, datetime, CellState]] = {
        (no, row): (f"born {no}", BORN, COMPLETED) for no in (1, 2, 3) for row in rows
    }
    for patch in found:
        for no, one in patch.restated.items():
            for row in rows:
                if row < one.end_row_no:
                    cells[no, row] = (*cells[no, row][:2], restated(cells[no, row][2], one.state))
        for no, written in patch.cells.items():
            for row, entry in written.items():
                if (no, row) in cells:
                    value, at, state = cells[no, row]
                    if entry.value is KEPT:
                        cells[no, row] = (value, at, restated(state, entry.state))
                    else:
                        cells[no, row] = (entry.value, entry.written_at, entry.state)
    return [[cells[no, row] for row in rows] for no in (1, 2, 3)]


def unshown(columns: list[list[Written]]) -> list[list[tuple[Any, datetime, CellState]]]:
    return [[(value, at, state) for value, _, at, state in column] for column in columns]


@given(st.lists(patches, max_size=5))
def test_a_reader_sees_the_last_that_was_written(found: list[Patch]) -> None:
    assert unshown(read(found)) == by_hand(found)


@given(st.lists(patches, min_size=1, max_size=5), st.integers(0, 5))
def test_merged_patches_leave_the_same_cells(found: list[Patch], kept: int) -> None:
    found = restates_in_order(found)
    kept = min(kept, len(found) - 1)
    one = found[kept]
    for patch in found[kept + 1 :]:
        one = merged(one, patch)
    assert read([*found[:kept], one]) == read(found)


@given(patches)
def test_a_patch_comes_back_from_its_bytes(patch: Patch) -> None:
    assert decode_patch(encode_patch(patch)) == patch
    assert read([decode_patch(encode_patch(patch))]) == read([patch])


def test_patches_stay_few_and_cells_are_seldom_written_anew() -> None:
    held: list[NumberedPatch] = []
    written = 0
    entry = Entry("x", BORN)
    for row in range(5_000):
        patch = Patch({1: {row: entry}})
        taken = count_to_merge(held, 1, 40)
        for one in reversed(held[len(held) - taken :]):
            patch = merged(one.patch, patch)
        written += patch.cell_count
        held = [*held[: len(held) - taken], NumberedPatch(row, patch, patch.cell_count)]
        assert len(held) <= 14
    assert written / 5_000 < 14
    big = [NumberedPatch(1, Patch({1: {1: entry}}), 8_000_000)]
    assert count_to_merge(big, 5, 40) == 0
