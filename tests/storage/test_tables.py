"""Tables and sheets under several callers at once, and in their order."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from storage.domain.errors import Invalid, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.sheets import create_blank_sheet, delete_sheet, list_sheets
from storage.store import Store
from storage.tables import create_table, delete_table


def titles(store: Store, who: Principal, table_id: object) -> list[tuple[str, int]]:
    page = list_sheets(store, who, table_id=table_id, request=PageRequest(100))  # type: ignore[arg-type]
    return [(sheet.title, sheet.index) for sheet in page.items]


def test_titles_made_up_at_the_same_time_differ(store: Store, who: Principal, stranger: Principal) -> None:
    create_table(store, stranger)
    with ThreadPoolExecutor(8) as threads:
        made = [table.title for table in threads.map(lambda _: create_table(store, who), range(24))]
    assert set(made) == {"Untitled Table", *(f"Untitled Table {n}" for n in range(2, 25))}


def test_a_made_up_title_is_not_that_of_a_table_that_may_come_back(store: Store, who: Principal) -> None:
    delete_table(store, who, create_table(store, who).id)
    assert create_table(store, who).title == "Untitled Table 2"
    create_table(store, who, title="Untitled Table 4")
    assert [create_table(store, who).title for _ in range(2)] == ["Untitled Table 5", "Untitled Table 6"]


def test_a_sheet_goes_where_it_is_asked_to_and_the_others_make_room(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    for title, index in (("first", 0), ("second", 1), ("last", 99), (None, None)):
        create_blank_sheet(store, who, table_id=table.id, title=title, index=index)
    expected = ["first", "second", "Sheet 1", "last", "Sheet 5"]
    assert titles(store, who, table.id) == [(title, at) for at, title in enumerate(expected)]
    page = list_sheets(store, who, table_id=table.id, request=PageRequest(1))
    delete_sheet(store, who, table_id=table.id, sheet_id=page.items[0].id)
    assert titles(store, who, table.id) == [(title, at) for at, title in enumerate(expected[1:])]
    with pytest.raises(Invalid):
        create_blank_sheet(store, who, table_id=table.id, index=-1)


def test_sheets_made_at_the_same_time_have_places_of_their_own(store: Store, who: Principal) -> None:
    table = create_table(store, who)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: create_blank_sheet(store, who, table_id=table.id, index=0), range(12)))
    found = titles(store, who, table.id)
    assert [at for _, at in found] == list(range(13))
    assert len({title for title, _ in found}) == 13


def test_what_is_not_ones_own_is_unknown(store: Store, who: Principal, stranger: Principal) -> None:
    table = create_table(store, who)
    for caller, table_id in ((stranger, table.id), (who, uuid4())):
        with pytest.raises(NotFound):
            create_blank_sheet(store, caller, table_id=table_id)
        with pytest.raises(NotFound):
            delete_table(store, caller, table_id)
    assert titles(store, who, table.id) == [("Sheet 1", 0)]
