"""Words of a text as search knows them: runs of letters and digits, whatever their case."""

import re
from functools import cache

from storage.domain.errors import Invalid, Problem

MOST_QUERY_CHARS, MOST_QUERY_WORDS = 1_000, 32
_WORD = re.compile(r"[^\W_]+")


@cache
def _folded_char(char: str) -> str:
    full = char.casefold()
    if len(full) == 1:
        return full
    lower = char.lower()
    return lower if len(lower) == 1 else char


class _Folding(dict[int, str]):
    """Filled as characters are met; most texts have few."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded_char(chr(code))
        return folded


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Fold case as Unicode's simple folding does: character by character, so that lengths stay.

    It is also what RE2 does when it ignores case.
    """
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def words_of(text: str) -> list[str]:
    """Folded words in the order they stand, with repeats."""
    return _WORD.findall(fold(text))


def query_words(q: str | None, loc: tuple[str, ...] = ("body", "q")) -> tuple[str, ...]:
    """Return the words of a free-text query, each once; none of them: nothing is asked.

    A word that begins another one is left out: whatever holds the longer holds it too.

    Raises:
        Invalid: the query is too long, or has too many words.
    """
    if q is None:
        return ()
    if len(q) > MOST_QUERY_CHARS:
        raise Invalid(Problem(loc, f"must have at most {MOST_QUERY_CHARS} characters", "string_too_long"))
    distinct = list(dict.fromkeys(words_of(q)))
    longest = tuple(
        word for word in distinct if not any(other != word and other.startswith(word) for other in distinct)
    )
    if len(longest) > MOST_QUERY_WORDS:
        raise Invalid(Problem(loc, f"must have at most {MOST_QUERY_WORDS} different words", "too_long"))
    return longest


def holds_words(words: tuple[str, ...], *texts: str) -> bool:
    """Say whether each word begins a word of one of the texts."""
    if not words:
        return True
    held = {word for text in texts for word in words_of(text)}
    return all(any(one.startswith(word) for one in held) for word in words)
