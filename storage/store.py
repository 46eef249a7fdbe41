"""An open store: the catalog, the log database, the data root, a clock and a source of ids."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from storage.domain.errors import PromptlakeError
from storage.domain.log_files import FOLDER
from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot
from storage.engine.few_at_once import FewAtOnce
from storage.engine.group_commit import GroupCommit
from storage.engine.log_lake import LogLake
from storage.engine.migrate import migrate
from storage.engine.rows.prompts import Bodies, Expansions, remembered_bodies, remembered_expansions
from storage.engine.sandbox.pool import Pool
from storage.engine.secrets import secret
from storage.engine.segment_reader import SegmentReader
from storage.engine.snapshots import Snapshots
from storage.settings import Settings


class LogsLost(PromptlakeError):
    """The log database is missing where files of logs are."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Store:
    """Everything a verb needs. Close it when done; never carry it over a fork."""

    settings: Settings
    catalog: Catalog
    logs: Catalog
    # small writes to `logs`: what is said of a log once it is there
    log_notes: GroupCommit
    data: DataRoot
    segments: SegmentReader
    snapshots: Snapshots
    sandbox: Pool
    lake: LogLake
    # pages of long values
    large_pages: FewAtOnce
    cell_key: bytes = field(repr=False)
    cursor_key: bytes = field(repr=False)
    prompt_bodies: Bodies = field(default_factory=remembered_bodies, repr=False)
    expansions: Expansions = field(default_factory=remembered_expansions, repr=False)
    now: Callable[[], datetime] = _now
    new_id: Callable[[], UUID] = uuid4

    def close(self) -> None:
        self.sandbox.close()
        self.lake.close()
        self.catalog.close()
        self.logs.close()


def open_store(
    settings: Settings,
    *,
    now: Callable[[], datetime] = _now,
    new_id: Callable[[], UUID] = uuid4,
    durable: bool = True,
    stays_ready: bool = False,
    logs_lost: bool = False,
) -> Store:
    """Open the store that the settings name, made or upgraded where needed.

    Without `durable`, for a caller who repeats what a power failure undid, the catalog's commits do not wait
    for the disk. With `stays_ready` a sandbox worker is at hand also after a long pause. With
    `logs_lost` a log database that is missing is made anew although files of logs are there.

    Raises:
        LogsLost: the log database is missing and files of logs are there.
    """
    data = DataRoot(settings.data)
    if not logs_lost:
        _refuse_lost_logs(settings, data)
    catalog = Catalog(settings.catalog, durable=durable)
    # a log of 3 KB fills most of a page of 4 KB: with two to a page a commit writes a quarter less
    logs = Catalog(settings.log_database, page_bytes=8192)
    migrate(catalog, "catalog")
    migrate(logs, "logs")
    return Store(
        settings=settings,
        catalog=catalog,
        logs=logs,
        log_notes=GroupCommit(logs),
        data=data,
        segments=SegmentReader(data),
        snapshots=Snapshots(),
        sandbox=Pool(stays_ready=stays_ready),
        lake=LogLake(),
        large_pages=FewAtOnce("large pages of rows", at_once=2, most_waiting=16, wait_s=30.0),
        cell_key=secret(catalog, "cell_key"),
        cursor_key=secret(catalog, "cursor_key"),
        now=now,
        new_id=new_id,
    )


def _refuse_lost_logs(settings: Settings, data: DataRoot) -> None:
    """An empty log database beside files of logs would hide them, and give their ids a second time."""
    path = Path(settings.log_database.removeprefix("sqlite:///"))
    is_file = settings.log_database.startswith("sqlite:///")
    if is_file and not path.exists() and any(data.path(FOLDER).rglob("*.parquet")):
        raise LogsLost(
            f"{path} is missing, but files of logs are there. Bring it back from a backup, or let "
            "`promptlake doctor --rebuild-logs` make it anew from the files."
        )


@contextmanager
def opened(settings: Settings, *, durable: bool = True, logs_lost: bool = False) -> Iterator[Store]:
    """Open a store for a block, as `open_store` does."""
    store = open_store(settings, durable=durable, logs_lost=logs_lost)
    try:
        yield store
    finally:
        store.close()
