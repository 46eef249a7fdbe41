"""Results of model calls, kept for the whole workspace: the same computation is not paid twice."""

from collections.abc import Sequence
from datetime import timedelta

from storage.domain.keys import Principal
from storage.domain.model_results import ModelResult
from storage.domain.operations import Operation
from storage.engine.rows.model_results import (
    delete_results_before,
    insert_results,
    select_known,
    select_results,
)
from storage.store import Store


def find_results(
    store: Store, operation: Operation, keys: Sequence[bytes], *, own: bool
) -> dict[bytes, ModelResult]:
    """Return what is known of these keys in the workspace; with `own` only what the operation computed."""
    with store.catalog.read() as connection:
        found = select_results(
            connection, operation.workspace_id, keys, operation_no=operation.no if own else None
        )
    return {one.key: one for one in found}


def known_keys(store: Store, who: Principal, keys: Sequence[bytes]) -> set[bytes]:
    """Return of which keys the workspace knows the result."""
    with store.catalog.read() as connection:
        return select_known(connection, who.workspace_id, keys)


def keep_results(store: Store, operation: Operation, results: Sequence[ModelResult]) -> None:
    """Keep results of an operation; a key that is known gets the new one."""
    if results:
        with store.catalog.transaction() as connection:
            insert_results(connection, operation.workspace_id, operation.no, results, store.now())


def forget_results(store: Store) -> int:
    """Remove results that are older than the setting says; return how many."""
    before = store.now() - timedelta(days=store.settings.result_days)
    with store.catalog.transaction() as connection:
        return delete_results_before(connection, before)
