"""Random edits, rows, versions, restores, deletes and imports leave what a plain in-memory sheet holds."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.cells import edit_cell
from storage.domain.cells import same_value
from storage.domain.columns import Column
from storage.domain.errors import NotFound
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.rows import RowPage
from storage.domain.sheets import Sheet
from storage.restores import create_version
from storage.row_changes import add_rows, delete_rows
from storage.rows import list_rows
from storage.sheet_changes import change_sheet, undelete_sheet
from storage.sheet_upkeep import compact_sheet
from storage.sheets import delete_sheet, get_sheet
from storage.store import Store
from storage.tables import create_table
from storage.verification import verify_sheet
from storage.version_diff import diff_versions, get_version
from storage.versions import list_versions
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.importing import import_rows, start

VALUES = st.sampled_from(["", "a", "ü\0", None, 0, 1, 1.0, True, {"k": [1, None]}, [], "long " * 50])
TITLES = st.lists(st.sampled_from(["Column A", "b", "c"]), min_size=1, max_size=3, unique=True)


@dataclass(frozen=True)
class State:
    """Columns by title and rows by a key that stays; a row has a value a column.

    `born` tells columns of one title apart: one that was made anew after a restore is another.
    """

    title: str
    columns: tuple[str, ...]
    born: tuple[int, ...]
    rows: tuple[tuple[int, tuple[tuple[str, Any], ...]], ...]

    def values(self) -> list[list[Any]]:
        return [[dict(cells)[title] for title in self.columns] for _, cells in self.rows]

    def written(self, at: int, title: str, value: Any) -> "State":
        key, cells = self.rows[at]
        row = (key, tuple({**dict(cells), title: value}.items()))
        return replace(self, rows=(*self.rows[:at], row, *self.rows[at + 1 :]))


def equal(found: list[list[Any]], expected: list[list[Any]]) -> bool:
    shape = [len(row) for row in found] == [len(row) for row in expected]
    return shape and all(
        same_value(one, other)
        for was, now in zip(found, expected, strict=True)
        for one, other in zip(was, now, strict=True)
    )


OPEN: list[Store] = []


@pytest.fixture(autouse=True)
def opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    OPEN.append(store)
    # so that the few rows of a history are many pieces
    monkeypatch.setattr("storage.domain.sheet_upkeep.MOST_PIECES", 1)
    monkeypatch.setattr("storage.domain.sheet_upkeep._LEAST_JOINTS", 1)
    monkeypatch.setattr("storage.domain.sheet_upkeep._SMALL_ROWS", 64)
    monkeypatch.setattr("storage.domain.sheet_upkeep._JOINED_ROWS", 900)
    yield
    OPEN.clear()


class SheetMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # one store for all histories, each with a table of its own
        self.store = OPEN[0]
        facts = find_key(self.store, KEY)
        assert facts is not None
        self.who: Principal = facts.principal
        self.key = 0

    @initialize()
    def make(self) -> None:
        table = create_table(self.store, self.who)
        (sheet_id,) = table.sheet_row_counts
        self.ids: dict[str, UUID] = {"table_id": table.id, "sheet_id": sheet_id}
        self.state = State("Sheet 1", ("Column A",), (0,), ((self.new_key(), (("Column A", ""),)),))
        self.touched = False
        # by version number, from 1 on
        self.versions = [self.state]

    def new_key(self) -> int:
        self.key += 1
        return self.key

    def sheet(self) -> Sheet:
        return get_sheet(self.store, self.who, **self.ids)

    def page(self, **query: Any) -> RowPage:
        return list_rows(self.store, self.who, **self.ids, request=PageRequest(1000), **query)

    def columns(self) -> tuple[Column, ...]:
        return self.page().columns

    def remember(self, version_number: int) -> None:
        self.versions.append(self.state)
        assert version_number == len(self.versions)

    @precondition(lambda self: self.state.rows and self.state.columns)
    @rule(row=st.integers(0, 999), column=st.integers(0, 9), value=VALUES)
    def edit(self, row: int, column: int, value: Any) -> None:
        at, place = row % len(self.state.rows), column % len(self.state.columns)
        wanted = self.page().page.items[at].cells[place].id
        edit_cell(self.store, self.who, **self.ids, cell_id=wanted, value=value)
        self.touched |= not same_value(dict(self.state.rows[at][1])[self.state.columns[place]], value)
        self.state = self.state.written(at, self.state.columns[place], value)

    @rule(values=st.lists(st.lists(VALUES, max_size=2), max_size=4), more=st.sampled_from([0, 0, 1, 3]))
    def add(self, values: list[list[Any]], more: int) -> None:
        self.add_values(values, len(values) + more or 1)

    @rule(value=VALUES)
    def add_many(self, value: Any) -> None:
        # so many that they become a segment
        self.add_values([[value, value]] * 700, 700)

    def add_values(self, values: list[list[Any]], count: int) -> None:
        columns = self.columns()
        given = [{column.id: value for column, value in zip(columns, row, strict=False)} for row in values]
        added = add_rows(self.store, self.who, **self.ids, count=count, values=given)
        assert added.first_index == len(self.state.rows)
        titles = self.state.columns
        for at in range(count):
            row = values[at] if at < len(values) else []
            cells = {**dict.fromkeys(titles, ""), **dict(zip(titles, row, strict=False))}
            self.state = replace(self.state, rows=(*self.state.rows, (self.new_key(), tuple(cells.items()))))
        self.touched = True

    @precondition(lambda self: self.state.rows)
    @rule(indices=st.lists(st.integers(0, 9_999), min_size=1, max_size=300))
    def delete(self, indices: list[int]) -> None:
        gone = {index % len(self.state.rows) for index in indices}
        left = delete_rows(self.store, self.who, **self.ids, row_indices=sorted(gone))
        rows = tuple(row for at, row in enumerate(self.state.rows) if at not in gone)
        self.state = replace(self.state, rows=rows)
        self.touched = True
        assert left == len(rows)

    @rule()
    def save(self) -> None:
        version = create_version(self.store, self.who, **self.ids, name="saved")
        self.remember(version.version_number)

    @rule(back=st.integers(0, 99))
    def restore(self, back: int) -> None:
        number = len(self.versions) - back % len(self.versions)
        found = get_version(self.store, self.who, **self.ids, version=number)
        version = create_version(self.store, self.who, **self.ids, source_version_id=found.id)
        self.state = self.versions[number - 1]
        self.remember(version.version_number)

    @rule(title=st.sampled_from(["one", "two"]))
    def rename(self, title: str) -> None:
        sheet = change_sheet(self.store, self.who, **self.ids, title=title)
        if title != self.state.title:
            self.state = replace(self.state, title=title)
            self.remember(sheet.version_count)
        assert sheet.version_count == len(self.versions)

    @rule(titles=TITLES, data=st.data())
    def load(self, titles: list[str], data: st.DataObject) -> None:
        rows = data.draw(st.lists(st.lists(VALUES, min_size=len(titles), max_size=len(titles)), max_size=3))
        operation = start(self.store, self.who, self.ids["table_id"], self.ids["sheet_id"]).operation
        sheet = import_rows(self.store, operation, titles, rows)
        kept = (
            self.state
            if self.touched or len(self.versions) > 1
            else replace(self.state, columns=(), born=(), rows=())
        )
        new = [title for title in titles if title not in kept.columns]
        columns = (*kept.columns, *new)
        born = (*kept.born, *(self.new_key() for _ in new))
        before = [(key, tuple({**dict.fromkeys(columns), **dict(cells)}.items())) for key, cells in kept.rows]
        added = [
            (self.new_key(), tuple({**dict.fromkeys(columns), **dict(zip(titles, row, strict=True))}.items()))
            for row in rows
        ]
        self.state = State(self.state.title, columns, born, (*before, *added))
        self.remember(sheet.version_count)

    @rule()
    def delete_and_bring_back(self) -> None:
        delete_sheet(self.store, self.who, **self.ids)
        with pytest.raises(NotFound):
            self.sheet()
        undelete_sheet(self.store, self.who, **self.ids)

    @rule(one=st.integers(0, 99), other=st.integers(0, 99))
    def compare(self, one: int, other: int) -> None:
        before, after = one % len(self.versions) + 1, other % len(self.versions) + 1
        diff = diff_versions(self.store, self.who, **self.ids, before=before, after=after)
        old, new = self.versions[before - 1], self.versions[after - 1]
        was, now = dict(old.rows), dict(new.rows)
        were = list(zip(old.columns, old.born, strict=True))
        are = list(zip(new.columns, new.born, strict=True))
        assert [column.title for column in diff.columns_added] == [one[0] for one in are if one not in were]
        assert [column.title for column in diff.columns_removed] == [one[0] for one in were if one not in are]
        assert diff.rows.added == len(now.keys() - was.keys())
        assert diff.rows.deleted == len(was.keys() - now.keys())
        common = [title for title, born in are if (title, born) in were]
        changed = [
            (dict(was[key])[title], dict(now[key])[title])
            for key in now
            if key in was
            for title in common
            if not same_value(dict(was[key])[title], dict(now[key])[title])
        ]
        assert diff.changed_count == len(changed)
        assert sorted(map(str, changed)) == sorted(str((one.before, one.after)) for one in diff.changes)

    @rule(back=st.integers(0, 99))
    def read_version(self, back: int) -> None:
        number = len(self.versions) - back % len(self.versions)
        page = self.page(version_number=number)
        expected = self.versions[number - 1]
        assert tuple(column.title for column in page.columns) == expected.columns
        assert equal([[c.value for c in row.cells] for row in page.page.items], expected.values()[:1000])

    @invariant()
    def the_head_is_what_was_written(self) -> None:
        if not hasattr(self, "ids"):
            return
        page = self.page()
        sheet = self.sheet()
        assert (sheet.title, sheet.version_count) == (self.state.title, len(self.versions))
        assert page.row_count == sheet.row_count == len(self.state.rows)
        assert tuple(column.title for column in page.columns) == self.state.columns
        assert equal([[c.value for c in row.cells] for row in page.page.items], self.state.values()[:1000])

    @rule(everything=st.booleans())
    def compact(self, everything: bool) -> None:
        before = self.page().page.items
        compact_sheet(self.store, self.sheet().no, everything=everything)
        assert self.page().page.items == before

    @rule()
    def check_files(self) -> None:
        assert verify_sheet(self.store, self.sheet().no) == []
        listed = list_versions(self.store, self.who, **self.ids, request=PageRequest(100)).items
        assert [version.version_number for version in listed] == list(range(1, len(self.versions) + 1))[:100]


SHORT = settings(
    max_examples=6,
    stateful_step_count=20,
    # each step waits for the disk: making a failing history shorter would take minutes
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_a_sheet_is_what_a_plain_one_would_be() -> None:
    run_state_machine_as_test(SheetMachine, settings=SHORT)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_more_histories() -> None:
    run_state_machine_as_test(SheetMachine, settings=settings(SHORT, max_examples=150))
