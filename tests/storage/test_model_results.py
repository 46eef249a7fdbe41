"""Results of model calls that are kept: by workspace, the newest of a key, and not for ever."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from storage.domain.keys import Principal
from storage.domain.model_results import ModelResult
from storage.domain.operations import Operation
from storage.model_results import find_results, forget_results, keep_results
from storage.store import Store
from storage.tables import create_table
from tests.importing import start

KEY, OTHER = b"k" * 32, b"o" * 32


def operation_of(store: Store, who: Principal) -> Operation:
    return start(store, who, create_table(store, who).id).operation


def result(value: Any) -> ModelResult:
    return ModelResult(KEY, value, {"request_count": 1, "request_ids": [7]})


def test_results_are_found_by_key_within_their_workspace(
    store: Store, who: Principal, stranger: Principal
) -> None:
    mine, theirs = operation_of(store, who), operation_of(store, stranger)
    keep_results(store, mine, [result({"a": [1, None, "ä"]})])
    assert find_results(store, mine, [KEY, OTHER], own=False) == {KEY: result({"a": [1, None, "ä"]})}
    assert find_results(store, theirs, [KEY], own=False) == {}


def test_the_newest_result_of_a_key_counts_and_is_its_operations_own(store: Store, who: Principal) -> None:
    first, second = operation_of(store, who), operation_of(store, who)
    keep_results(store, first, [result("old")])
    assert find_results(store, second, [KEY], own=True) == {}
    keep_results(store, second, [result("new")])
    assert find_results(store, first, [KEY], own=False)[KEY].value == "new"
    assert find_results(store, second, [KEY], own=True)[KEY].value == "new"


def test_old_results_are_forgotten(store: Store, who: Principal) -> None:
    operation = operation_of(store, who)
    keep_results(store, operation, [result("kept")])
    assert forget_results(store) == 0
    late = replace(store, now=lambda: store.now() + timedelta(days=store.settings.result_days + 1))
    assert forget_results(late) == 1
    assert find_results(store, operation, [KEY], own=False) == {}
