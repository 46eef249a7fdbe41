"""Of any history of flushes and rewrites, and of what crashes left, each log is in one chosen file."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.log_files import FilesOverlap, LogFile, plan_manifest


@given(st.data())
def test_the_files_that_were_named_last_are_chosen(data: st.DataObject) -> None:
    on_disk: list[LogFile] = []
    named: list[LogFile] = []
    next_id = 1
    for made_us in range(data.draw(st.integers(1, 12))):
        if named and data.draw(st.booleans()):
            start = data.draw(st.integers(0, len(named) - 1))
            stop = data.draw(st.integers(start + 1, len(named)))
            file = LogFile(f"rewrite-{made_us}", named[start].first_id, named[stop - 1].last_id, made_us)
            named[start:stop] = [file]
        else:
            last_id = next_id + data.draw(st.integers(0, 5))
            if data.draw(st.booleans()):  # a crash before it was named: the next flush takes these and more
                on_disk.append(LogFile(f"orphan-{made_us}", next_id, last_id, made_us))
                last_id += data.draw(st.integers(0, 5))
            file = LogFile(f"flush-{made_us}", next_id, last_id, made_us + 1)
            named.append(file)
            next_id = last_id + 1
        on_disk.append(file)
    chosen = plan_manifest(data.draw(st.permutations(on_disk)))
    assert [(one.first_id, one.last_id) for one in chosen] == [(one.first_id, one.last_id) for one in named]
    assert all(before.last_id < after.first_id for before, after in pairwise(chosen))


def test_files_that_overlap_by_half_are_refused() -> None:
    with pytest.raises(FilesOverlap, match="a and b"):
        plan_manifest([LogFile("a", 1, 5, 1), LogFile("b", 4, 9, 2)])
    assert plan_manifest([]) == []
