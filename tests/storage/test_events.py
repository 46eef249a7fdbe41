"""Each event is written with its change: publications, labels, imports that succeed or fail."""

from typing import Any

import pytest

from storage.deliveries import list_deliveries
from storage.domain.errors import Unavailable
from storage.domain.imports import Imported
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.domain.prompts import Publication
from storage.domain.webhooks import EVENT_TYPES
from storage.import_commit import commit_import
from storage.imports import start_import
from storage.operations import claim, fail, get_operation, raise_attempt
from storage.sheets import delete_sheet
from storage.store import Store
from storage.tables import create_table
from storage.templates import publish
from storage.webhooks import create_webhook
from tests.importing import import_rows, start

BLUEPRINT = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}


@pytest.fixture
def webhook_id(store: Store, who: Principal) -> int:
    return create_webhook(store, who, url="https://93.184.215.14/", event_types=EVENT_TYPES)[0].id


def events(store: Store, who: Principal, webhook_id: int) -> list[tuple[str, dict[str, Any]]]:
    page = list_deliveries(store, who, webhook_id, request=PageRequest(100))
    return [(delivery.event.event_type, dict(delivery.event.details)) for delivery in page.items]


def test_a_publication_tells_of_the_version_and_then_of_its_labels(
    store: Store, who: Principal, webhook_id: int
) -> None:
    first = publish(store, who, Publication("greet", BLUEPRINT, release_labels=("prod", "prod")))
    publish(store, who, Publication("greet", BLUEPRINT, release_labels=("prod", "next")))
    prompt = {"prompt_template_id": first.prompt.id, "prompt_template_name": "greet"}
    version = {**prompt, "prompt_template_version_number": 1}
    told = events(store, who, webhook_id)
    assert [name.removeprefix("prompt_template_") for name, _ in told] == [
        "version_created", "label_created", "version_created", "label_moved", "label_created",
    ]  # fmt: skip
    assert told[0][1] == {**version, "prompt_version_id": first.id}
    assert told[1][1] == {**version, "prompt_template_label": "prod"}
    assert told[3][1] == {
        **prompt,
        "prompt_template_label": "prod",
        "prompt_template_version_number": 2,
        "old_prompt_template_version_number": 1,
    }


def test_an_import_tells_that_it_succeeded(store: Store, who: Principal, webhook_id: int) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id, operation_id="mine")
    import_rows(store, started.operation, ["a"], [["1"], ["2"]])
    assert events(store, who, webhook_id) == [
        (
            "table_sheet_created_from_file",
            {
                "operation_id": "mine",
                "table_id": str(table.id),
                "sheet_id": str(started.sheet.id),
                "file_name": "people.csv",
                "rows_added": 2,
                "row_count": 2,
            },
        )
    ]


def test_an_import_tells_once_that_it_failed(store: Store, who: Principal, webhook_id: int) -> None:
    table = create_table(store, who)
    started = start(store, who, table.id)
    assert raise_attempt(store, started.operation.no, 1)
    assert fail(store, started.operation.no, 2, "no good")
    assert not fail(store, started.operation.no, 2, "no good")
    ((name, details),) = events(store, who, webhook_id)
    assert (name, details["error_message"]) == ("table_sheet_created_from_file_failed", "no good")


def test_an_import_of_requests_and_a_deleted_sheet_are_told_as_what_they_are(
    store: Store, who: Principal, webhook_id: int
) -> None:
    table = create_table(store, who)
    (sheet_id,) = table.sheet_row_counts
    options: dict[str, Any] = {"kind": "import_request_logs", "operation_id": None, "spec": {}}
    started = start_import(store, who, table_id=table.id, target=sheet_id, request_hash="0" * 64, **options)
    claimed = claim(store, started.operation.no, 1, "run-1")
    commit_import(store, claimed, Imported(("a",), 0, ()))
    start_import(store, who, table_id=table.id, target=sheet_id, request_hash="1" * 64, **options)
    delete_sheet(store, who, table_id=table.id, sheet_id=sheet_id)
    (done, _), (failed, details) = events(store, who, webhook_id)
    assert done == "table_sheet_created_from_request_history"
    assert failed == "table_sheet_created_from_request_history_failed"
    assert details["error_message"] == "sheet deleted"
    assert "file_name" not in details


def test_an_import_whose_entry_cannot_be_written_neither_happened_nor_is_told(
    store: Store, who: Principal, webhook_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise Unavailable("The catalog cannot be written now (disk full or busy).")

    started = start(store, who, create_table(store, who).id)
    monkeypatch.setattr("storage.import_commit.insert_audit_entry", full)
    with pytest.raises(Unavailable):
        import_rows(store, started.operation, ["a"], [["1"]])
    assert get_operation(store, started.operation.no).status == "running"
    assert events(store, who, webhook_id) == []
