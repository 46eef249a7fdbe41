"""Differences of sequences: they lead from one to the other, and never take long."""

import difflib
import random
import time

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.sequences import MAX_DIFFERENCES, Effort, Opcode, opcodes, unified

few = st.lists(st.sampled_from("abc"), max_size=12)


def applied(codes: list[Opcode], a: list[str], b: list[str]) -> list[str]:
    """What the opcodes make of `a`, where they are what opcodes must be."""
    made: list[str] = []
    at = (0, 0)
    for before, code in zip([None, *codes], codes, strict=False):
        assert (code.a_from, code.b_from) == at
        assert before is None or before.tag != code.tag
        old, new = a[code.a_from : code.a_to], b[code.b_from : code.b_to]
        assert (bool(old), bool(new)) == {"insert": (False, True), "delete": (True, False)}.get(
            code.tag, (True, True)
        )
        made += old if code.tag == "equal" else new
        at = (code.a_to, code.b_to)
    assert at == (len(a), len(b))
    return made


@given(few, few)
def test_opcodes_lead_from_one_to_the_other_with_the_fewest_changes(a: list[str], b: list[str]) -> None:
    codes = opcodes(a, b)
    assert applied(codes, a, b) == b
    kept = sum(code.a_to - code.a_from for code in codes if code.tag == "equal")
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            longest[i + 1][j + 1] = longest[i][j] + 1 if x == y else max(longest[i][j + 1], longest[i + 1][j])
    assert kept == longest[-1][-1]


@given(few, few, st.integers(0, 30))
def test_with_little_effort_the_answer_is_coarse_and_right(a: list[str], b: list[str], effort: int) -> None:
    assert applied(opcodes(a, b, Effort(effort)), a, b) == b


@given(st.integers(0, 60), st.sets(st.integers(0, 59)), st.sets(st.integers(0, 59)))
def test_unified_is_what_the_standard_library_spells(n: int, gone: set[int], new: set[int]) -> None:
    a = [str(line) for line in range(n)]
    b = [line for i in range(n) for line in (["new"] if i in new else []) + ([] if i in gone else [str(i)])]
    # lines are unique but for the new ones, which stand alone: both find the same
    theirs = list(difflib.unified_diff(a, b, lineterm=""))[2:]
    ours = unified(a, b, opcodes(a, b))
    if new:
        assert applied(opcodes(a, b), a, b) == b
    else:
        assert ours == "\n".join(theirs)


def test_what_differs_much_is_replaced_whole_in_little_time() -> None:
    rng = random.Random(3)
    a, b = ([rng.choice("abc") for _ in range(200_000)] for _ in range(2))
    started = time.process_time()
    codes = opcodes(["same", *a, "end"], ["same", *b, "end"])
    assert time.process_time() - started < 10
    assert [code.tag for code in codes] == ["equal", "replace", "equal"]
    assert len(opcodes(a, [*a[:100], *"x" * (MAX_DIFFERENCES // 2), *a[100:]])) == 3
