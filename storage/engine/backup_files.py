"""Copies of databases at one moment, and of immutable files by hard link where the disk allows it."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from storage.engine.data_root import sync_file, sync_folder

_BUSY_S = 30.0
_UNFINISHED = (".tmp", ".part")


def copy_databases(sources: Sequence[Path], target: Path) -> None:
    """Copy SQLite databases as they all stood at one moment, while others read and write them.

    Writers wait for a few milliseconds, until the moment is taken.

    Raises:
        OSError: the disk is full.
    """
    with _full_disk_told(), ExitStack() as stack:
        readers = [stack.enter_context(closing(_connected(source))) for source in sources]
        with _locked(sources):
            for reader in readers:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        for source, reader in zip(sources, readers, strict=True):
            path = target / source.name
            with closing(sqlite3.connect(path)) as copy:
                # the copy reads in the transaction that is open: what is written since is not in it
                reader.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
            sync_file(path)


@contextmanager
def _full_disk_told() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise


@contextmanager
def emptied_on_failure(folder: Path, *files: Path) -> Iterator[None]:
    """Remove what a block that fails has written: all in a folder that was empty, and files that were not."""
    try:
        yield
    except BaseException:
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path in files:
            for one in path.parent.glob(f"{path.name}*"):  # what SQLite keeps beside it, too
                one.unlink(missing_ok=True)
        raise


@contextmanager
def _locked(sources: Sequence[Path]) -> Iterator[None]:
    with ExitStack() as stack:
        for source in sources:
            writer = stack.enter_context(closing(_connected(source)))
            writer.execute("BEGIN IMMEDIATE")
        yield


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)


def files_below(folder: Path, *, leave_out: Sequence[str] = ()) -> Iterator[Path]:
    """Yield the finished files below a folder, relative to it, but those in some of its folders."""
    for root, folders, names in os.walk(folder):
        here = Path(root).relative_to(folder)
        folders[:] = sorted(name for name in folders if str(here / name) not in leave_out)
        for name in sorted(names):
            if not name.endswith(_UNFINISHED):
                yield here / name


def link_files(source: Path, target: Path, names: Iterator[Path]) -> tuple[int, int]:
    """Link (or, on another disk, copy) immutable files; return how many, and their bytes.

    A file that is swept meanwhile is left out: nothing that is read names it.
    """
    count = size = 0
    target.mkdir(parents=True, exist_ok=True)
    folders = {target}
    for name in names:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        folders.add(place.parent)
        try:
            link_or_copy(source / name, place)
        except FileNotFoundError:
            continue
        count += 1
        size += place.stat().st_size
    for folder in folders:
        sync_folder(folder)
    return count, size


def link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
            raise
        shutil.copy2(source, target)
        sync_file(target)
