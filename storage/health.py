"""Is the store well: its databases, its schema, its disk. Looks only; nothing is made, upgraded or mended."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from storage.domain.findings import Finding, failed, judge_durable_write, judge_free_disk, ok, warning
from storage.domain.log_files import FOLDER
from storage.domain.operations import QUEUED
from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot
from storage.engine.health import durable_write_ms, find_damage, free_bytes, revision_of
from storage.engine.log_hits import broken_companions
from storage.engine.log_segments import find_quick_fault
from storage.engine.rows.deliveries import select_overdue_count
from storage.engine.rows.log_companions import select_companions
from storage.engine.rows.log_segments import select_segments
from storage.engine.rows.operations import select_by_status
from storage.settings import Settings

_RESTORE = "Stop the service, keep a copy of the home folder, and restore the database from a backup."


def check_storage(settings: Settings, *, now: datetime | None = None) -> list[Finding]:
    """Look at everything that the store is made of."""
    now = now or datetime.now(UTC)
    root = settings.root
    if not root.is_dir():
        return [warning("storage", f"{root} does not exist yet", "Start the service once: `promptlake up`.")]
    return [*_check_disk(root), *_check_databases(settings, now)]


def _check_disk(root: Path) -> Iterator[Finding]:
    yield judge_free_disk(free_bytes(root), str(root))
    try:
        yield judge_durable_write(durable_write_ms(root))
    except OSError as error:
        yield failed(
            "disk", f"{root} cannot be written: {error.strerror}", "Give the service's user the right."
        )


def _check_databases(settings: Settings, now: datetime) -> Iterator[Finding]:
    for name, url in (("catalog", settings.catalog), ("logs", settings.log_database)):
        if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
            if name == "logs" and any(DataRoot(settings.data, make=False).path(FOLDER).rglob("*.parquet")):
                yield failed(
                    "storage",
                    "the logs database is missing, but files of logs are there",
                    "Bring it back from a backup, or `promptlake doctor --rebuild-logs` makes it anew.",
                )
                continue
            yield warning("storage", f"no {name} database yet", "Start the service once: `promptlake up`.")
            continue
        with closing(Catalog(url)) as catalog:
            found = _check_database(name, catalog)
            yield found
            if name == "catalog" and found.state == "ok":
                yield from _check_outbox(catalog, now)
            if name == "logs" and found.state == "ok":
                yield from _check_log_files(settings, catalog)


def _check_database(name: str, catalog: Catalog) -> Finding:
    damage = find_damage(catalog)
    if damage is not None:
        return failed("storage", f"the {name} database is damaged: {damage}", _RESTORE)
    revision = revision_of(catalog, name)
    if revision == "unknown":
        return failed(
            "storage",
            f"the {name} database was written by a newer release",
            "Install that release again; this one must not touch it.",
        )
    if revision == "older":
        return warning(
            "storage",
            f"the {name} database is of an older release",
            "The next `promptlake up` upgrades it; keep a backup before.",
        )
    return ok("storage", f"the {name} database is whole and of this release")


_PATIENCE = timedelta(minutes=1)
_MOST_OPERATIONS = 1_000


def _check_outbox(catalog: Catalog, now: datetime) -> Iterator[Finding]:
    with catalog.read() as connection:
        waiting = select_by_status(connection, [QUEUED], _MOST_OPERATIONS)
    late = [operation for operation in waiting if now - operation.updated_at > _PATIENCE]
    if late:
        yield warning(
            "operations",
            f"{len(late)} operations have waited for over a minute",
            "They run as soon as Dagster and the workers do; nothing is lost.",
        )
    with catalog.read() as connection:
        overdue = select_overdue_count(connection, now - _PATIENCE)
    if overdue:
        yield warning(
            "webhooks",
            f"{overdue} deliveries have been due for over a minute",
            "They leave as soon as the process `webhooks` runs; its log says why it does not.",
        )


def _check_log_files(settings: Settings, logs: Catalog) -> Iterator[Finding]:
    """Compare sizes and footers of the files of logs; a daily check in Dagster compares what they hold."""
    data = DataRoot(settings.data, make=False)
    with logs.read() as connection:
        named = select_segments(connection)
        companions = select_companions(connection)
    broken = sorted(one.key for one in named if find_quick_fault(data, one))
    if broken:
        yield failed(
            "logs",
            f"{len(broken)} of {len(named)} files of logs are missing or damaged, the first is {broken[0]}",
            "Put them back from a backup, where they have the same names. Without one, move them out of the "
            "data folder and run `promptlake doctor --rebuild-logs`: their logs are lost.",
        )
    elif named:
        yield ok("logs", f"{len(named)} files of logs are there")
    lost = broken_companions(data, companions)
    if lost:
        yield warning(
            "logs",
            f"{len(lost)} indexes of logs are missing or damaged; searches read the logs themselves",
            "The service makes them anew within minutes, as does `promptlake doctor --rebuild-index`.",
        )
