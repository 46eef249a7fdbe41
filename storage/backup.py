"""Backup of everything that is kept, taken while the service runs; restore of it into an empty home."""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from storage.domain.errors import PromptlakeError
from storage.engine.backup_files import copy_databases, emptied_on_failure, files_below, link_files
from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot, sync_file, sync_folder
from storage.engine.rows.log_segments import release_all_leases, select_next_id, select_segments
from storage.engine.rows.segments import select_all_keys
from storage.log_flush import publish_views
from storage.settings import Settings
from storage.store import Store, opened

_TOLD = "backup.json"
_DATA = "data"
_FORMAT = 1
# Made anew by a restore.
_LEFT_OUT = ("views",)


class BackupRefused(PromptlakeError):
    """It cannot be made or restored; the message says why."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds."""

    made_at: str
    next_log_id: int
    log_segments: int
    sheet_segments: int
    files: int
    bytes: int
    format: int = _FORMAT


def back_up(store: Store, folder: Path) -> Backup:
    """Write everything into a folder that is new or empty; the service may run meanwhile.

    Databases are copied as they stand at one moment; files never change, so they are linked where the folder
    is on the same disk. The record of Dagster's runs is not in it. What fails leaves the folder empty.

    Raises:
        BackupRefused: the folder is not empty, or the databases are no SQLite files.
        OSError: the folder cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BackupRefused(f"{folder} is not empty")
    sources = [_sqlite(store.catalog), _sqlite(store.logs)]
    folder.mkdir(parents=True, exist_ok=True)
    with emptied_on_failure(folder):
        copy_databases(sources, folder)
        root = store.data.path("")
        files, size = link_files(root, folder / _DATA, files_below(root, leave_out=_LEFT_OUT))
        return _tell(store, folder, sources, files, size)


def _tell(store: Store, folder: Path, sources: list[Path], files: int, size: int) -> Backup:
    """Check that every file that the copied databases name is there, and say so: a backup ends with this."""
    catalog, logs = (Catalog(f"sqlite:///{folder / source.name}") for source in sources)
    try:
        with catalog.read() as connection:
            sheets = select_all_keys(connection)
        with logs.read() as connection:
            segments = [segment.key for segment in select_segments(connection)]
            next_id = select_next_id(connection)
    finally:
        catalog.close()
        logs.close()
    _check_files(folder / _DATA, [*sheets, *segments])
    made = Backup(store.now().isoformat(), next_id, len(segments), len(sheets), files, size)
    told = folder / _TOLD
    told.write_text(json.dumps({**asdict(made), "databases": [source.name for source in sources]}, indent=1))
    sync_file(told)
    sync_folder(folder)
    return made


def _check_files(data: Path, keys: list[str]) -> None:
    missing = [key for key in keys if not (data / key).exists()]
    if missing:
        raise BackupRefused(f"{len(missing)} files are missing, the first is {missing[0]}")


def _sqlite(catalog: Catalog) -> Path:
    if catalog.sqlite_path is None:
        raise BackupRefused(f"{catalog.url.get_backend_name()} is backed up by its own tools")
    return Path(catalog.sqlite_path)


def restore(folder: Path, settings: Settings) -> Backup:
    """Bring a backup back into a home that holds no store yet, upgraded to this release where it is older.

    Raises:
        BackupRefused: the folder holds no whole backup, or the home holds a store.
        OSError: the home cannot be written.
    """
    told = _read(folder)
    targets = [_database(settings.catalog), _database(settings.log_database)]
    data = DataRoot(settings.data).path("")
    if any(path.exists() for path in targets) or any(files_below(data)):
        raise BackupRefused(f"{settings.root} holds a store already: name an empty home")
    with emptied_on_failure(data, *targets):
        link_files(folder / _DATA, data, files_below(folder / _DATA))
        for name, target in zip(told.pop("databases"), targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy_last(folder / name, target)
        with opened(settings) as store:
            with store.logs.transaction() as connection:
                release_all_leases(connection)
            publish_views(store, everything=True)
    return Backup(**told)


def _read(folder: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads((folder / _TOLD).read_text())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BackupRefused(f"{folder} holds no whole backup: {_TOLD} is missing") from error
    except ValueError as error:
        raise BackupRefused(f"{folder / _TOLD} cannot be read") from error
    if told.get("format") != _FORMAT:
        raise BackupRefused(
            f"The backup is of a format that this release does not know: {told.get('format')}"
        )
    return told


def _database(url: str) -> Path:
    if not url.startswith("sqlite:///"):
        raise BackupRefused("A backup is restored into SQLite files: leave the URLs of the databases unset")
    return Path(url.removeprefix("sqlite:///"))


def _copy_last(source: Path, target: Path) -> None:
    """Copy a database under its name once it is whole."""
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.copyfile(source, temporary)
    sync_file(temporary)
    temporary.rename(target)
    sync_folder(target.parent)
