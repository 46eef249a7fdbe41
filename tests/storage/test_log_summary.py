"""A day's summary counts each log of the day once, of all workspaces, flushed or not, and no deleted one."""

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.charts import hour_chart
from storage.domain.keys import Principal
from storage.log_deletion import delete_log
from storage.log_flush import count_log_rows, flush_logs, oldest_waiting_s
from storage.log_summary import summarize_day
from storage.store import Store
from storage.workspaces import create_workspace
from tests.logs import add_logs

NOON = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)
START = 1_714_557_600_000_000


def at(store: Store, moment: datetime) -> Store:
    return replace(store, now=lambda: moment)


@pytest.fixture
def filled(store: Store, who: Principal) -> Store:
    create_workspace(store, "other")
    add_logs(at(store, NOON - timedelta(days=1)), 1, price=100.0)
    noon = at(store, NOON)
    for latency_ms in (100, 200, 300):
        add_logs(noon, 1, price=0.5, input_tokens=10, request_start_time=START,
                 request_end_time=START + latency_ms * 1000)  # fmt: skip
    (deleted,) = add_logs(noon, 1, price=100.0)
    flush_logs(noon)
    delete_log(noon, who, deleted)
    add_logs(at(store, NOON + timedelta(hours=2)), 1, workspace_id=2, model="a|`b`\n<c>", status="ERROR",
             error_type="PROVIDER_ERROR", output_tokens=7)  # fmt: skip
    add_logs(at(store, NOON + timedelta(days=1)), 1, price=100.0)
    return store


def test_a_day_is_summed_up_by_model_and_hour(filled: Store) -> None:
    found = summarize_day(filled, NOON.date())
    first, second = found.models
    assert (first.model, first.requests, first.errors, first.input_tokens, first.cost) == (
        "gpt-4o",
        3,
        0,
        30,
        1.5,
    )
    assert (first.latency_ms_p50, round(first.latency_ms_p95)) == (200.0, 290)
    assert (second.requests, second.errors, second.output_tokens) == (1, 1, 7)
    assert found.by_hour == ((12, 3, 0), (14, 1, 1))
    assert (found.total("requests"), found.workspaces) == (4, 2)
    assert found.table().splitlines()[2] == "| `gpt-4o` | 3 | 0 | 30 | 0 | 1.5000 | 200 | 290 |"
    assert found.table().splitlines()[3].startswith("| `a/'b' <c>` | 1 | 1 |")


def test_a_day_without_logs_is_empty(store: Store) -> None:
    found = summarize_day(store, NOON.date())
    assert (found.models, found.by_hour, found.total("cost")) == ((), (), 0)
    assert len(found.table().splitlines()) == 2
    ET.fromstring(found.chart())


def test_the_bars_of_the_chart_are_as_high_as_their_values() -> None:
    drawn = ET.fromstring(hour_chart({0: (4000, 1000), 23: (2000, 1)}))
    whole, part = [path.attrib["d"] for path in drawn.iter("{http://www.w3.org/2000/svg}path")]
    assert whole == "M0 0v40M23 0v20"
    assert part == "M0 0v10M23 0v1"
    assert "4,000" in [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]


@given(
    st.dictionaries(st.integers(0, 23), st.tuples(st.integers(1, 10**9), st.integers(0, 10**9)), max_size=24)
)
def test_the_chart_stays_below_what_dagster_hides_behind_a_link(by_hour: dict[int, tuple[int, int]]) -> None:
    most = {hour: (whole + part, part) for hour, (whole, part) in by_hour.items()}
    assert len(b64encode(hour_chart(most).encode())) < 1000 - len("![](data:image/svg+xml;base64,)")


def test_rows_are_counted_and_waiting_is_told(filled: Store) -> None:
    assert count_log_rows(filled).named == count_log_rows(filled).in_files == 5
    assert oldest_waiting_s(at(filled, NOON + timedelta(hours=3))) == 3600
    flush_logs(filled)
    assert oldest_waiting_s(filled) == 0
    (path, *_) = filled.data.path("logs").rglob("request_logs-*.parquet")
    path.unlink()
    found = count_log_rows(filled)
    assert found.in_files < found.named
    assert found.overlapping == 0
    with filled.logs.transaction() as connection:
        connection.exec_driver_sql("UPDATE log_segments SET first_id = 1 WHERE kind = 'request_logs'")
    assert count_log_rows(filled).overlapping == 1
