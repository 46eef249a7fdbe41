"""Wire shapes of suggestions."""

from typing import Literal

from api.json_body import load_json
from api.schemas.base import Answer
from storage.domain.errors import Invalid, Malformed, Problem
from storage.domain.filters import EVERYTHING, Group, parse_filter_group

_LOC = ("query", "filter_group")


class SuggestionAnswer(Answer):
    """Values of a field, the most frequent first."""

    success: Literal[True] = True
    values: list[str]


def read_group(text: str | None) -> Group:
    """Read a filter group from the JSON text of a query parameter.

    Raises:
        Invalid: it is no JSON, or no filter group.
    """
    if text is None:
        return EVERYTHING
    try:
        value = load_json(text.encode(errors="surrogatepass"), deep=True)
    except (Malformed, Invalid) as error:
        raise Invalid(Problem(_LOC, "must be a filter group as JSON", "json_invalid")) from error
    return parse_filter_group(value, _LOC)
