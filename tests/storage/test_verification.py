"""A snapshot is checked against its files, byte by byte."""

from collections.abc import Callable
from pathlib import Path

import pytest

from storage.domain.keys import Principal
from storage.domain.sheets import Sheet
from storage.sheets import delete_sheet
from storage.store import Store
from storage.tables import create_table
from storage.verification import verify_sheet
from tests.importing import imported_sheet

ROWS = [[f"name {n}", n] for n in range(2000)]


@pytest.fixture
def sheet(store: Store, who: Principal) -> Sheet:
    return imported_sheet(store, who, create_table(store, who).id, ["name", "n"], ROWS)


@pytest.fixture
def file(store: Store, sheet: Sheet) -> Path:
    (found,) = store.data.path(f"sheets/{sheet.id}").iterdir()
    return found


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (Path.unlink, "missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "bytes"),
        (flip_a_byte, "not those that were published"),
    ],
)
def test_a_file_that_changed_is_named(
    store: Store, sheet: Sheet, file: Path, harm: Callable[[Path], None], said: str
) -> None:
    assert verify_sheet(store, sheet.no) == []
    harm(file)
    (problem,) = verify_sheet(store, sheet.no)
    assert file.stem in problem
    assert said in problem
    assert str(file.parent.parent.parent) not in problem


def test_a_deleted_sheet_has_no_problems(store: Store, who: Principal, sheet: Sheet, file: Path) -> None:
    file.unlink()
    delete_sheet(store, who, table_id=sheet.table_id, sheet_id=sheet.id)
    assert verify_sheet(store, sheet.no) == []
