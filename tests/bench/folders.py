"""Lists and paths of a large registry: pages of 100,000 workflows, paths among 10,000 folders, a full folder.

The yardstick is the bare route of the ingest benchmark, asked by the same client.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import sqlalchemy as sa

from storage.engine.registry_schema import workflows
from storage.engine.schema import folders, prompts, users
from storage.settings import Settings
from storage.store import Store, opened
from storage.workspaces import bootstrap, create_key
from tests.bench.bare import bare_server
from tests.bench.material import log_body
from tests.bench.measure import Bench, summary
from tests.bench.service import KEY, Service, running

PAGE_TARGET_MS, RESOLVE_TARGET_MS = 50.0, 5.0
# pages at the end of a walk must not cost much more than those at its start
FLAT_TARGET = 1.5
_PER_PAGE = 100
_SORTS = ("created_at", "updated_at", "name", "id")
_LIST = "/workflows?per_page=100"
_ENTITIES = "/api/public/v2/folders/entities?limit=100"
_RESOLVE = "/api/public/v2/folders/resolve-id?path="


def run(bench: Bench) -> None:
    home = bench.folder / "home"
    count = bench.sized(100_000, 2_000)
    full = seed(home, count)
    with running(home) as service:
        report_pages(bench, service, count)
        report_paths(bench, service)
        report_contents(bench, service, full)
    with bare_server() as url, httpx2.Client(timeout=10) as client:
        body = log_body()
        bare = timed(lambda _: client.post(url, content=body), range(bench.sized(300, 20)))
    bench.report("yardstick: the bare route", **summary(bare))


def seed(home: Path, count: int) -> int:
    """Make the registry in a home; return the id of the folder that holds `count` prompts."""
    rng = random.Random(7)
    with opened(Settings(home=home, api_key=KEY)) as store:
        bootstrap(store)
        create_key(store, user="ann", email="ann@example.com")
        with store.catalog.transaction() as connection:
            creators = list(connection.execute(sa.select(users.c.id)).scalars())
            rows = [_workflow(store, rng, number, creators) for number in range(count)]
            connection.execute(workflows.insert(), rows)
            tops = [_folder(connection, store, None, f"top {number}") for number in range(10)]
            for top, middle in product(tops, range(10)):
                inner = _folder(connection, store, top, f"v{middle}.0")
                leaves = [_row(store, name=f"leaf {leaf}", parent_id=inner) for leaf in range(99)]
                connection.execute(folders.insert(), leaves)
            held = [_row(store, name=f"p{number}", folder_id=tops[0], tags=[]) for number in range(count)]
            connection.execute(prompts.insert(), held)
    return tops[0]


def _row(store: Store, **values: Any) -> dict[str, Any]:
    return {"workspace_id": 1, "created_at": store.now(), "updated_at": store.now()} | values


def _folder(connection: sa.Connection, store: Store, parent_id: int | None, name: str) -> int:
    made = connection.execute(folders.insert().values(_row(store, name=name, parent_id=parent_id)))
    return int(made.inserted_primary_key[0])


def _workflow(store: Store, rng: random.Random, number: int, creators: list[int]) -> dict[str, Any]:
    created = store.now() - timedelta(seconds=rng.randrange(10**7))
    return _row(
        store,
        name=f"{rng.randrange(10**9)} flow {number}",
        user_id=creators[number % len(creators)],
        latest_version_number=1,
        created_at=created,
        updated_at=created + timedelta(seconds=rng.randrange(10**6)),
    )


def timed(call: Callable[[Any], object], over: Iterable[Any]) -> list[float]:
    """Time one call after another; milliseconds."""
    times = []
    for item in over:
        started = time.perf_counter()
        call(item)
        times.append((time.perf_counter() - started) * 1000)
    return times


def report_pages(bench: Bench, service: Service, count: int) -> None:
    """Every order: first, middle and last pages; without a filter, and with the widest ones."""
    last = count // _PER_PAGE
    filters = {
        "no filter": "",
        "by creator, since, until": "&created_by_email=ann@example.com&created_after=2000-01-01"
        "&updated_before=2100-01-01",
    }
    for told, query in filters.items():
        where = list(product(_SORTS, ("asc", "desc"), (1, last // 2, last)))
        pages = [
            f"{_LIST}&sort_by={sort}&sort_order={order}&page={page}{query}" for sort, order, page in where
        ]
        timed(service.get, pages)
        figures = summary(timed(service.get, pages * bench.sized(10, 1)))
        bench.report(
            f"a page of {count} workflows, {told}",
            **figures,
            target_p95_ms=PAGE_TARGET_MS,
            met=figures["p95_ms"] <= PAGE_TARGET_MS,
        )


def report_paths(bench: Bench, service: Service) -> None:
    rng = random.Random(11)

    def paths(n: int) -> Iterator[str]:
        for _ in range(n):
            top, middle, leaf = rng.randrange(10), rng.randrange(10), rng.randrange(99)
            yield f"{_RESOLVE}top {top}.v{middle}\\.0.leaf {leaf}"

    timed(service.get, paths(20))
    figures = summary(timed(service.get, paths(bench.sized(500, 20))))
    bench.report(
        "a path resolved among 10,000 folders",
        **figures,
        target_p50_ms=RESOLVE_TARGET_MS,
        met=figures["p50_ms"] <= RESOLVE_TARGET_MS,
    )


def report_contents(bench: Bench, service: Service, folder_id: int) -> None:
    """Walk a folder's contents to the end: the pages of its last tenth against those of the first."""
    times = []
    cursor = ""
    while True:
        started = time.perf_counter()
        page = service.get(f"{_ENTITIES}&folder_id={folder_id}{cursor}")
        times.append((time.perf_counter() - started) * 1000)
        if not page["pagination"]["has_more"]:
            break
        cursor = f"&cursor={page['pagination']['next_cursor']}"
    tenth = max(1, len(times) // 10)
    first, end = summary(times[1 : tenth + 1]), summary(times[-tenth:])
    bench.report(
        "a page of a folder's contents, the last tenth of the walk",
        **end,
        first_tenth=first,
        target_ratio=FLAT_TARGET,
        ratio=round(end["p50_ms"] / first["p50_ms"], 2),
        met=end["p50_ms"] <= FLAT_TARGET * first["p50_ms"],
    )
