"""Imports: what a run hands over when its files are written, and how that joins the sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from storage.domain.cells import STALE
from storage.domain.encodings import Encoding
from storage.domain.errors import PromptlakeError
from storage.domain.manifests import Fill, Part, SegmentRef, Source, Stored
from storage.domain.operations import Operation
from storage.domain.sheets import Sheet


class ImportRefused(PromptlakeError):
    """The content cannot be imported; the message is for the client and names record, line or column."""

    code = "import_failed"


@dataclass(frozen=True, slots=True)
class ImportedField:
    """A field of a segment: which of the import's titles it holds, and how."""

    position: int
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class ImportedSegment:
    """A published file that holds `rows` rows, beginning with row `first_row` of the import.

    Its fields are named c0, c1, ... in the order of `fields`. `sha256` is of its bytes, in hexadecimal.
    """

    key: str
    rows: int
    bytes: int
    sha256: str
    first_row: int
    fields: tuple[ImportedField, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """Everything that an import adds.

    Segments may split rows and columns as they like and may use different encodings for the same title; a
    title that no segment holds for a row is null there. `message` is what the client reads of it.
    """

    titles: tuple[str, ...]
    row_count: int
    segments: tuple[ImportedSegment, ...]
    message: str = "Import succeeded"


@dataclass(frozen=True, slots=True)
class NewSheet:
    """An import makes its own sheet: `index` beyond the end, or None, is the end."""

    title: str
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The first answer to the start of an import; a repeat answers the same and starts nothing."""

    operation: Operation
    sheet: Sheet
    repeated: bool


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """An import as a client polls it; `row_count` is the sheet's."""

    operation: Operation
    row_count: int


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The sheet that a claimed import writes: its id (files lie under it) and its title."""

    sheet_id: UUID
    title: str


def check_imported(imported: Imported) -> None:
    """Raise ValueError unless titles are distinct and segments hold each value once, within the rows."""
    if len(set(imported.titles)) != len(imported.titles):
        raise ValueError("titles repeat")
    held: dict[int, list[tuple[int, int]]] = {}
    for segment in imported.segments:
        end = segment.first_row + segment.rows
        if segment.first_row < 0 or segment.rows < 1 or end > imported.row_count:
            raise ValueError(f"{segment.key} lies outside the {imported.row_count} rows")
        for one in segment.fields:
            if not 0 <= one.position < len(imported.titles):
                raise ValueError(f"{segment.key} holds a title that is none")
            held.setdefault(one.position, []).append((segment.first_row, end))
    for ranges in held.values():
        ranges.sort()
        if any(after[0] < before[1] for before, after in pairwise(ranges)):
            raise ValueError("two segments hold the same value")


def imported_parts(
    imported: Imported,
    column_nos: Sequence[int],
    first_row_no: int,
    now: datetime,
    computed_nos: Sequence[int] = (),
) -> tuple[Part, ...]:
    """Lay out the rows of an import; `column_nos` are the columns of its titles, in order.

    The cells of computed columns are stale, as in every row that is added.
    """
    stale: dict[int, Source] = {no: Fill(None, None, STALE) for no in computed_nos}
    edges = {0, imported.row_count}
    for segment in imported.segments:
        edges |= {segment.first_row, segment.first_row + segment.rows}
    refs = {
        segment.key: SegmentRef(segment.key, tuple(one.encoding for one in segment.fields), now)
        for segment in imported.segments
    }
    bounds = sorted(edges)
    parts: list[Part] = []
    for start, end in pairwise(bounds):
        columns = _columns_at(imported.segments, refs, column_nos, start)
        parts.append(Part(first_row_no + start, end - start, stale | columns, now))
    return tuple(parts)


def _columns_at(
    segments: Sequence[ImportedSegment], refs: Mapping[str, SegmentRef], column_nos: Sequence[int], row: int
) -> dict[int, Source]:
    return {
        column_nos[one.position]: Stored(refs[segment.key], at, row - segment.first_row)
        for segment in segments
        if segment.first_row <= row < segment.first_row + segment.rows
        for at, one in enumerate(segment.fields)
    }


def source_of(operation: Operation) -> str:
    """Say where the rows of an import come from: `file` or `request_logs`."""
    return "request_logs" if operation.kind == "import_request_logs" else "file"


def file_name_of(operation: Operation) -> str:
    """Return the file name as it was sent; empty for an import of requests."""
    name: Any = operation.spec.get("file_name", "")
    return str(name)
