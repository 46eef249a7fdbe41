"""Template texts filled from columns, a whole chunk at once; what prompts of columns are made of.

An f-string text is one polars expression. jinja2 texts of a row go to the sandbox together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipelines.columns.values import is_empty, shown
from storage.domain.blueprints import Blueprint, Text, with_texts
from storage.domain.keys import Principal
from storage.domain.results import CellError, Values
from storage.domain.templates import JINJA2, Field, Template, parse_template, variables_of
from storage.sandbox import Evaluation, jinja2_of, jinja2_rows_of
from storage.store import Store

_UNREADABLE = CellError("TEMPLATE_RENDER_ERROR", "The rendered text cannot be read")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Texts of rows: a polars String series a text, in the order of the texts.

    A row in `errors` did not render, and its texts are null. `empty` tells of each variable that is read
    where it was missing, null or the empty text.
    """

    texts: tuple[pl.Series, ...]
    empty: Mapping[str, pl.Series]
    errors: Mapping[int, CellError] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """About how much memory the texts take."""
        return sum(int(one.str.len_bytes().sum() or 0) for one in self.texts)

    def blueprint_at(self, row: int, blueprint: Mapping[str, Any]) -> Blueprint:
        """Return the blueprint with the texts of a row, when these are the texts that `texts_of` it gave."""
        filled = iter(self.texts)
        return with_texts(blueprint, lambda _: str(next(filled)[row]))

    def missing_at(self, row: int) -> tuple[str, ...]:
        """The variables that were missing or empty in a row, in order of first sight."""
        return tuple(name for name, empty in self.empty.items() if empty[row])

    @property
    def rows_with_missing(self) -> pl.Series:
        """Whether any variable was missing or empty, a row."""
        frame = pl.DataFrame([*self.empty.values(), self.texts[0].is_null() & False])
        return frame.select(pl.any_horizontal(pl.all())).to_series()


class Renderer:
    """Renders the texts of one prompt; made by `opened_renderer`."""

    def __init__(
        self,
        texts: Sequence[Text],
        parsed: Mapping[int, Template],
        variables: Sequence[str],
        jinja2: Evaluation | None,
    ) -> None:
        self.variables = tuple(variables)
        self._texts, self._parsed, self._jinja2 = texts, parsed, jinja2

    def render(self, columns: Mapping[str, Values], count: int) -> Rendered:
        """Fill the texts for `count` rows; `columns` are values by variable, one that is missing is empty.

        Raises:
            Unavailable: no sandbox worker became free.
        """
        read = {name: values for name, values in columns.items() if name in self.variables}
        found: dict[int, pl.Series] = _filled(self._parsed, read, count)
        errors: Mapping[int, CellError] = {}
        if self._jinja2 is not None:
            theirs, errors = _rendered(self._jinja2, read, count, len(self._texts) - len(self._parsed))
            places = [at for at in range(len(self._texts)) if at not in self._parsed]
            found |= dict(zip(places, theirs, strict=True))
        if errors:
            found = {at: texts.scatter(list(errors), None) for at, texts in found.items()}
        return Rendered(
            tuple(found[at] for at in range(len(self._texts))),
            {name: _empty(name, columns.get(name), count) for name in self.variables},
            errors,
        )


@contextmanager
def opened_renderer(store: Store, who: Principal, texts: Sequence[Text]) -> Iterator[Renderer]:
    """Parse texts, each in its language, and render them in a block.

    Raises:
        InvalidConfig: a text does not parse; names where it stands, line and position.
        Unguarded: it is jinja2, and nothing is evaluated on this machine.
        Unavailable: no sandbox worker became free.
    """
    parsed = {
        at: parse_template(text.text, text.where)
        for at, text in enumerate(texts)
        if text.template_format != JINJA2
    }
    theirs = [text for text in texts if text.template_format == JINJA2]
    read = iter(jinja2_of(store, who).variables(theirs) if theirs else ())
    names: Iterable[str] = (
        name
        for at in range(len(texts))
        for name in (variables_of(parsed[at]) if at in parsed else next(read))
    )
    variables = list(dict.fromkeys(names))
    with ExitStack() as stack:
        sources = [text.text for text in theirs]
        jinja2 = stack.enter_context(jinja2_rows_of(store, who, sources)) if theirs else None
        yield Renderer(texts, parsed, variables, jinja2)


def _filled(
    parsed: Mapping[int, Template], columns: Mapping[str, Values], count: int
) -> dict[int, pl.Series]:
    """f-string texts: text as it is, other values as compact JSON, nothing for null and what is missing."""
    read = {name for template in parsed.values() for name in variables_of(template)} & columns.keys()
    # by number: a title may be anything, an expression of polars would take some for patterns
    places = {name: str(at) for at, name in enumerate(sorted(read))}
    frame = pl.DataFrame(
        [shown(columns[name]).fill_null("").alias(at) for name, at in places.items()]
        or [pl.Series("none", [""]).extend_constant("", count)[1:]]
    )
    expressions = [
        pl.concat_str([*(_piece(piece, places) for piece in template), pl.lit("")]).alias(f"text {at}")
        for at, template in parsed.items()
    ]
    filled = frame.with_columns(expressions)
    return {at: filled[f"text {at}"] for at in parsed}


def _piece(piece: str | Field, places: Mapping[str, str]) -> pl.Expr:
    if isinstance(piece, str):
        return pl.lit(piece)
    return pl.col(places[piece.name]) if piece.name in places else pl.lit("")


def _rendered(
    jinja2: Evaluation, columns: Mapping[str, Values], count: int, texts: int
) -> tuple[list[pl.Series], Mapping[int, CellError]]:
    found = jinja2.evaluate(columns, count)
    errors = dict(found.errors)
    rows: list[list[str | None]] = []
    for at, row in enumerate(found.values):
        if isinstance(row, list) and len(row) == texts and all(isinstance(text, str) for text in row):
            rows.append(row)
            continue
        errors.setdefault(at, _UNREADABLE)
        rows.append([None] * texts)
    return [pl.Series([row[at] for row in rows], dtype=pl.String) for at in range(texts)], errors


def _empty(name: str, values: Values | None, count: int) -> pl.Series:
    if values is None:
        return pl.Series(name, [True]).extend_constant(value=True, n=count)[1:]
    return is_empty(values).alias(name)
