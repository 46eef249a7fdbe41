"""Regular expressions of tenants: whether one is worth a try, and how large it is written out."""

import re

from storage.domain.errors import InvalidConfig

LONGEST_PATTERN = 10_000
_COUNTED = re.compile(r"\{(\d+)(,(\d*))?\}")
_MOST = 10**12
_OF_MANY = frozenset("wWdDsSpPbB")


def check_pattern(pattern: str, where: str) -> int:
    """Check a regular expression and return the number of its groups.

    Raises:
        InvalidConfig: it is none, or too long.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidConfig(f"{where}: must have at most {LONGEST_PATTERN} characters")
    try:
        return re.compile(pattern).groups
    except (re.error, OverflowError) as error:
        raise InvalidConfig(f"{where}: is no regular expression: {error}") from error
    except RecursionError:
        raise InvalidConfig(f"{where}: the regular expression is nested too deeply") from None


def size_of_pattern(pattern: str) -> int:
    """Return about how many parts a regular expression has, what is repeated so many times counted as often.

    The engine's time is at most in proportion to it, times the length of the text.
    """
    sizes, last, at = [0], 0, 0
    while at < len(pattern):
        char = pattern[at]
        counted = _COUNTED.match(pattern, at) if char == "{" else None
        if counted:
            times = int(counted[3] or counted[1])
            sizes[-1] += last * max(0, min(times, _MOST) - 1)
            last = min(last * times, _MOST)
            at = counted.end()
            continue
        at += 1
        if char == "(":
            sizes.append(0)
        elif char == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif char not in "*+?|^$":
            last = 10 if char in "[." else 1
            if char == "\\":
                last = 10 if pattern[at : at + 1] in _OF_MANY else 1
                at += 1
            elif char == "[":
                at = _end_of_class(pattern, at)
            sizes[-1] += last
    return max(1, min(sum(sizes), _MOST))


def _end_of_class(pattern: str, at: int) -> int:
    """Return the place after a class of characters; a bracket that comes first stands for itself."""
    first = at + 1 if pattern[at : at + 1] == "^" else at
    end = first
    while end < len(pattern) and (pattern[end] != "]" or end == first):
        end += 2 if pattern[end] == "\\" else 1
    return end + 1
