"""Ids of paths, checked before a body is read: unknown, foreign and ill-formed ones are all 404."""

import re
from collections.abc import Mapping
from uuid import UUID

from api.routing import PathCheck
from storage.cells import check_cell
from storage.column_changes import get_column
from storage.dataset_groups import get_group
from storage.datasets import check_dataset
from storage.deliveries import get_delivery
from storage.domain.errors import NotFound
from storage.domain.ids import is_hidden_id
from storage.domain.keys import Principal
from storage.folders import get_folder
from storage.prompt_labels import check_label
from storage.reports import check_report
from storage.sheet_changes import check_deleted_sheet
from storage.sheets import get_sheet
from storage.store import Store
from storage.tables import check_deleted_table, check_table
from storage.templates import check_prompt_id
from storage.webhooks import get_webhook

# any more would not fit the catalog's 64 bits
_MOST_DIGITS = 18
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def path_uuid(params: Mapping[str, str], name: str) -> UUID:
    """Return an id of the path.

    Raises:
        NotFound: it is no UUID, or of a table that is none to clients, so nothing has it.
    """
    text = params[name]
    if not _UUID.fullmatch(text) or is_hidden_id(UUID(text)):
        raise NotFound(f"No such {name.removesuffix('_id')}")
    return UUID(text)


def path_number(params: Mapping[str, str], name: str) -> int:
    """Return a numeric id of the path.

    Raises:
        NotFound: it is no number that an id can be.
    """
    text = params[name]
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise NotFound(f"No such {name.removesuffix('_id')}")
    return int(text)


def request_path(_store: Store, _who: Principal, params: Mapping[str, str]) -> None:
    """Check that {request_id} is a number; the route itself looks whether a log has it."""
    path_number(params, "request_id")


def folder_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {folder_id}."""
    get_folder(store, who, path_number(params, "folder_id"))


def version_of(text: str) -> int | UUID:
    """Return what a version is named by: its number or its id.

    Raises:
        NotFound: it is neither.
    """
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    if not _UUID.fullmatch(text):
        raise NotFound("No such version")
    return UUID(text)


def dataset_group_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {dataset_group_id}."""
    get_group(store, who, path_number(params, "dataset_group_id"))


def dataset_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {dataset_id}."""
    check_dataset(store, who, path_number(params, "dataset_id"))


def report_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {report_id}."""
    check_report(store, who, path_number(params, "report_id"))


def webhook_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {webhook_id}."""
    get_webhook(store, who, path_number(params, "webhook_id"))


def delivery_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {webhook_id} and {delivery_id}."""
    get_delivery(store, who, path_number(params, "webhook_id"), path_number(params, "delivery_id"))


def prompt_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {prompt_id}."""
    check_prompt_id(store, who, path_number(params, "prompt_id"))


def label_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {label_id}."""
    check_label(store, who, path_number(params, "label_id"))


def table_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {table_id}."""
    check_table(store, who, path_uuid(params, "table_id"))


def sheet_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {table_id} and {sheet_id}."""
    get_sheet(store, who, table_id=path_uuid(params, "table_id"), sheet_id=path_uuid(params, "sheet_id"))


def deleted_table_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {table_id}, which may be deleted."""
    check_deleted_table(store, who, path_uuid(params, "table_id"))


def deleted_sheet_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {table_id}, and {sheet_id}, which may be deleted."""
    check_deleted_sheet(
        store, who, table_id=path_uuid(params, "table_id"), sheet_id=path_uuid(params, "sheet_id")
    )


def cell_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {table_id}, {sheet_id} and {cell_id}."""
    check_cell(
        store,
        who,
        table_id=path_uuid(params, "table_id"),
        sheet_id=path_uuid(params, "sheet_id"),
        cell_id=path_uuid(params, "cell_id"),
    )


def column_path(store: Store, who: Principal, params: Mapping[str, str]) -> None:
    """Check {table_id}, {sheet_id} and {column_id}."""
    get_column(
        store,
        who,
        table_id=path_uuid(params, "table_id"),
        sheet_id=path_uuid(params, "sheet_id"),
        column_id=path_uuid(params, "column_id"),
    )


def form_only(*names: str) -> PathCheck:
    """Check no more than that ids of the path are UUIDs.

    For a route that reads nothing else of its call: its verb refuses what is unknown, and the catalog is
    asked once.
    """

    def check(_store: Store, _who: Principal, params: Mapping[str, str]) -> None:
        for name in names:
            path_uuid(params, name)

    return check
