"""Differences of two sequences: the fewest items to remove and add, in bounded time.

The standard library's matcher can take minutes for a megabyte of repeated lines; this one gives up early and
calls all that lies between the common ends replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

MAX_DIFFERENCES = 1000
MAX_EFFORT = 1_000_000

Tag = Literal["equal", "delete", "insert", "replace"]
T = TypeVar("T")


_Reached = list[int]  # by diagonal, how far along `a`


@dataclass(slots=True)
class Effort:
    """What may still be spent; it grows with the square of how much differs. A million is about a second."""

    left: int = MAX_EFFORT


@dataclass(frozen=True, slots=True)
class Opcode:
    """`a[a_from:a_to]` becomes `b[b_from:b_to]`."""

    tag: Tag
    a_from: int
    a_to: int
    b_from: int
    b_to: int


def opcodes(a: Sequence[T], b: Sequence[T], effort: Effort | None = None) -> list[Opcode]:
    """Say how to make `b` of `a`, from the first item to the last; neighbours have different tags.

    Several differences may share one effort.
    """
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    a_end, b_end = len(a) - end, len(b) - end
    matches = _matches(a[start:a_end], b[start:b_end], effort or Effort())
    found: list[Opcode] = []
    i = j = 0
    runs = [(0, 0, start), *((start + x, start + y, n) for x, y, n in matches), (a_end, b_end, end)]
    for x, y, n in runs:
        if i < x or j < y:
            tag: Tag = "insert" if i == x else "delete" if j == y else "replace"
            found.append(Opcode(tag, i, x, j, y))
        if n and found and found[-1].tag == "equal":
            last = found.pop()
            found.append(Opcode("equal", last.a_from, x + n, last.b_from, y + n))
        elif n:
            found.append(Opcode("equal", x, x + n, y, y + n))
        i, j = x + n, y + n
    return found


def unified(a: Sequence[str], b: Sequence[str], codes: Sequence[Opcode], context: int = 3) -> str:
    """Spell a difference of lines as the hunks of a unified diff; no text when nothing differs."""
    lines: list[str] = []
    for hunk in _hunks(codes, context):
        first, last = hunk[0], hunk[-1]
        a_at, b_at = _range(first.a_from, last.a_to), _range(first.b_from, last.b_to)
        lines.append(f"@@ -{a_at} +{b_at} @@")
        for code in hunk:
            if code.tag == "equal":
                lines += [f" {line}" for line in a[code.a_from : code.a_to]]
                continue
            lines += [f"-{line}" for line in a[code.a_from : code.a_to]]
            lines += [f"+{line}" for line in b[code.b_from : code.b_to]]
    return "\n".join(lines)


def _common(a: Sequence[T], b: Sequence[T]) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


def _matches(a: Sequence[T], b: Sequence[T], effort: Effort) -> list[tuple[int, int, int]]:
    """Runs of equal items (from in a, from in b, length) by Myers' greedy way; none when it gives up."""
    middle = min(len(a) + len(b), MAX_DIFFERENCES) + 1
    furthest = [0] * (2 * middle + 1)
    history: list[_Reached] = []
    for steps in range(middle):
        effort.left -= steps + 1
        if effort.left < 0:
            break
        history.append(furthest[middle - steps - 1 : middle + steps + 2])
        for diagonal in range(-steps, steps + 1, 2):
            below, above = furthest[middle + diagonal - 1], furthest[middle + diagonal + 1]
            x = above if _goes_down(diagonal, steps, below, above) else below + 1
            while x < len(a) and 0 <= x - diagonal < len(b) and a[x] == b[x - diagonal]:
                x += 1
            furthest[middle + diagonal] = x
            if x >= len(a) and x - diagonal >= len(b):
                return _walked(history, len(a), len(b))
    return []


def _goes_down(diagonal: int, steps: int, below: int, above: int) -> bool:
    return diagonal == -steps or (diagonal != steps and below < above)


def _walked(history: list[_Reached], x: int, y: int) -> list[tuple[int, int, int]]:
    """Walk back over the furthest points that were reached, and collect the diagonals."""
    runs: list[tuple[int, int, int]] = []
    for steps in range(len(history) - 1, 0, -1):
        reached, diagonal = history[steps], x - y
        here = diagonal + steps + 1
        if _goes_down(diagonal, steps, reached[here - 1], reached[here + 1]):
            x_before = reached[here + 1]
            y_before = x_before - diagonal - 1
            x_from, y_from = x_before, y_before + 1
        else:
            x_before = reached[here - 1]
            y_before = x_before - diagonal + 1
            x_from, y_from = x_before + 1, y_before
        if x > x_from:
            runs.append((x_from, y_from, x - x_from))
        x, y = x_before, y_before
    return [(0, 0, x), *runs[::-1]] if x else runs[::-1]


def _hunks(codes: Sequence[Opcode], context: int) -> list[list[Opcode]]:
    """Group changes with up to `context` equal lines around them; far ones stand apart."""
    hunks: list[list[Opcode]] = []
    for index, code in enumerate(codes):
        if code.tag == "equal":
            continue
        before = codes[index - 1] if index else None
        after = codes[index + 1] if index + 1 < len(codes) else None
        near = before is not None and hunks and before.a_to - before.a_from <= 2 * context
        if near and before is not None:
            hunks[-1] = [*hunks[-1][:-1], before, code]
        else:
            hunks.append(([_last(before, context)] if before is not None else []) + [code])
        if after is not None:
            hunks[-1].append(_first(after, context))
    return hunks


def _last(code: Opcode, most: int) -> Opcode:
    skipped = max(0, code.a_to - code.a_from - most)
    return Opcode("equal", code.a_from + skipped, code.a_to, code.b_from + skipped, code.b_to)


def _first(code: Opcode, most: int) -> Opcode:
    skipped = max(0, code.a_to - code.a_from - most)
    return Opcode("equal", code.a_from, code.a_to - skipped, code.b_from, code.b_to - skipped)


def _range(start: int, end: int) -> str:
    # as `diff -u` counts: from 1, and an empty range stands after the line that is named
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"
