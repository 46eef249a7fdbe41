"""Search, suggestions and one log by id over many logs, beside the bare DuckDB query of the same files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from storage.domain.filters import parse_filter_group
from storage.domain.words import query_words
from storage.engine.log_sql import quoted
from storage.engine.rows.log_companions import select_companions
from storage.engine.rows.log_segments import select_segments
from storage.log_compaction import compact_logs
from storage.log_index import index_logs
from storage.request_logs import get_request_log
from storage.request_search import SearchQuery, search_requests
from storage.settings import Settings
from storage.store import Store, open_store
from storage.suggestions import SuggestionQuery, list_suggestions
from storage.workspaces import bootstrap, find_key
from tests.bench.many_logs import MODELS, RARE, fill
from tests.bench.measure import MB, Bench, summary

KEY = "key-of-the-bench-of-searches-000000001"
LOGS, QUICK_LOGS = 10_000_000, 20_000
ROUNDS, BARE_ROUNDS = 9, 3
Filters = list[dict[str, Any]]


def run(bench: Bench) -> None:
    store = open_store(Settings(home=bench.folder / "home", api_key=KEY))
    try:
        bootstrap(store)
        measure(bench, store, bench.sized(LOGS, QUICK_LOGS))
    finally:
        store.close()


def measure(bench: Bench, store: Store, count: int) -> None:
    """Fill an empty store and report a line a figure."""
    received = fill(store, count)
    # as a service that has been running would have done by then
    compact_logs(store)
    index_logs(store)
    with store.logs.read() as connection:
        segments, companions = select_segments(connection), select_companions(connection)
    size = sum(one.bytes for one in segments)
    bench.report(
        "logs filled",
        logs=count,
        files=len(segments),
        json_mb=round(received / MB),
        parquet_share=round(size / received, 3),
        share_with_index=round((size + sum(one.bytes for one in companions)) / received, 3),
        target_shares=[0.4, 0.5],
    )
    logs = ", ".join(quoted(str(store.data.path(one.key))) for one in segments)
    with duckdb.connect(config={"threads": 2}) as bare:
        for what, target_ms, ask, query in _figures(store, count):
            walls, cpus = _rounds(ask, ROUNDS)
            bare_walls, bare_cpus = _rounds(_bare(bare, query.format(f"[{logs}]")), BARE_ROUNDS)
            told = summary(walls)
            bench.report(
                what,
                **told,
                cpu_p50_ms=summary(cpus)["p50_ms"],
                target_p50_ms=target_ms,
                yardstick_bare_query={**summary(bare_walls), "cpu_p50_ms": summary(bare_cpus)["p50_ms"]},
                met=told["p50_ms"] <= target_ms,
            )


def _bare(connection: duckdb.DuckDBPyConnection, query: str) -> Callable[[int], Any]:
    return lambda _: connection.execute(query).fetchall()


def _rounds(ask: Callable[[int], Any], rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each round, by the clock and of CPU."""
    walls, cpus = [], []
    for at in range(rounds):
        started, worked = time.perf_counter(), time.process_time()
        ask(at)
        walls.append((time.perf_counter() - started) * 1000)
        cpus.append((time.process_time() - worked) * 1000)
    return walls, cpus


Figure = tuple[str, float, Callable[[int], Any], str]


def _figures(store: Store, count: int) -> list[Figure]:
    """What is measured: name, target in ms, a call of each round (no two the same), the bare query."""
    known = find_key(store, KEY)
    if known is None:
        raise RuntimeError("the key is gone")
    who = known.principal

    def found(filters: Filters, q: str | None = None, sort_by: str | None = None) -> Any:
        query = SearchQuery(parse_filter_group({"filters": filters}), query_words(q), sort_by)
        return search_requests(store, who, query, page=1, per_page=50)

    def by_model(at: int) -> Any:
        provider, model = MODELS[at % len(MODELS)]
        return found([_is("provider_type", provider), _is("engine", model)])

    def by_metadata(key: str, value: str) -> Any:
        return found([{"field": "metadata", "operator": "key_equals", "nested_key": key, "value": value}])

    def suggestions(field: str, key: str | None = None, filters: Filters | None = None) -> Any:
        group = parse_filter_group({"filters": filters or []})
        return list_suggestions(store, who, SuggestionQuery(field, key=key, group=group))

    newest = "SELECT id FROM read_parquet({}) WHERE " + "{} ORDER BY id DESC LIMIT 50"
    by_user = "SELECT metadata['user'] AS u FROM read_parquet({}) WHERE {} GROUP BY u ORDER BY count(*) DESC"
    pair = newest.format("{}", "provider = 'openai' AND model = 'o3'")
    return [
        ("newest 50 by provider and model", 150, by_model, pair),
        (
            "newest 50 by metadata",
            300,
            lambda at: by_metadata("customer", f"customer-{at}"),
            newest.format("{}", "metadata['customer'] = 'customer-1'"),
        ),
        (
            "newest 50 by rare metadata",
            300,
            lambda at: by_metadata("user", f"u{at}"),
            newest.format("{}", "metadata['user'] = 'u1'"),
        ),
        (
            "50 by cost",
            400,
            lambda at: found([_is("status", "ERROR", negated=bool(at % 2))] if at else [], sort_by="cost"),
            "SELECT id FROM read_parquet({}) ORDER BY price DESC, id DESC LIMIT 50",
        ),
        (
            "a rare word",
            500,
            lambda at: found([], q=RARE[: len(RARE) - at % 4]),
            newest.format("{}", f"contains(input, '{RARE}') OR contains(output, '{RARE}')"),
        ),
        (
            "suggestions, unscoped",
            50,
            lambda at: suggestions(("engine", "tags", "metadata_keys")[at % 3]),
            "SELECT model FROM read_parquet({}) GROUP BY model ORDER BY count(*) DESC LIMIT 100",
        ),
        (
            "suggestions, scoped",
            500,
            lambda at: suggestions("engine", filters=[_is("prompt", f"prompt-{at + 1}")]),
            "SELECT model FROM read_parquet({}) WHERE prompt_name = 'prompt-1' GROUP BY model LIMIT 100",
        ),
        (
            "suggestions of a key with 100,000 values",
            50,
            lambda at: suggestions("metadata_values", "user"),
            by_user.format("{}", "true"),
        ),
        (
            "suggestions of such a key, scoped",
            500,
            lambda at: suggestions("metadata_values", "user", [_is("prompt", f"prompt-{at + 1}")]),
            by_user.format("{}", "prompt_name = 'prompt-1'"),
        ),
        (
            "one by id",
            15,
            lambda at: get_request_log(store, who, 1 + at * (count - 1) // ROUNDS),
            f"SELECT * FROM read_parquet({{}}) WHERE id = {count // 2}",
        ),
    ]


def _is(field: str, value: str, *, negated: bool = False) -> dict[str, Any]:
    return {"field": field, "operator": "is_not" if negated else "is", "value": value}


def measured(folder: Path, count: int, show: Callable[[dict[str, Any]], None]) -> Bench:
    """As `run`, of another size; say whether a target was missed."""
    bench = Bench("search", folder, quick=False, show=show)
    store = open_store(Settings(home=folder / "home", api_key=KEY))
    try:
        bootstrap(store)
        measure(bench, store, count)
    finally:
        store.close()
    return bench
