"""Rows: a page of them, and which part of a sheet a page is."""

from dataclasses import dataclass

from storage.domain.cells import Cell
from storage.domain.columns import Column
from storage.domain.manifests import Manifest
from storage.domain.paging import Page, Window


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its place, its number (which stays), its cells in the order of the page's columns."""

    row_index: int
    row_no: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows of one version, with the columns shown; `row_count` is that of the whole version."""

    page: Page[Row]
    columns: tuple[Column, ...]
    row_count: int
    version_number: int


def rows_of(window: Window, manifest: Manifest) -> tuple[int, int]:
    """Return the first index and the number of rows that a window over row numbers shows."""
    if window.descending:
        end = manifest.row_count if window.position is None else manifest.index_from(window.position)
        start = max(0, end - window.limit)
    else:
        start = 0 if window.position is None else manifest.index_from(window.position + 1)
        end = min(manifest.row_count, start + window.limit)
    return start, end - start
