"""E8: a file becomes a sheet, once."""

from starlette.testclient import TestClient

from storage.store import Store
from tests.api.uploading import import_file


def test_a_csv_file_becomes_a_sheet(client: TestClient, store: Store) -> None:
    done = import_file(client, store, b"question,answer\nWhat?,42\n\nWhy?\n", "facts.csv")
    assert (done["status"], done["progress"], done["rows_added"]) == ("succeeded", 100, 2)
    assert done["file_name"] == "facts.csv"
    assert done["titles"] == ["question", "answer"]
    assert done["rows"] == [["What?", "42"], ["Why?", ""]]
