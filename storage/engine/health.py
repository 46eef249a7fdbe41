"""How the stored things are: schema revision, integrity, space, the time of a durable write."""

import os
import time
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from storage.engine.catalog import Catalog
from storage.engine.migrate import stored_revision
from storage.engine.revisions import known_revisions

Revision = Literal["current", "older", "unknown"]


def revision_of(catalog: Catalog, branch: str) -> Revision:
    """Compare the stored schema with this release's."""
    stored, known = stored_revision(catalog), known_revisions(branch)
    if stored == known[-1]:
        return "current"
    return "older" if stored is None or stored in known else "unknown"


def find_damage(catalog: Catalog) -> str | None:
    """Return the first damage that the database finds in itself; None when it finds none."""
    try:
        with catalog.read() as connection:
            if connection.dialect.name != "sqlite":
                connection.execute(sa.text("SELECT 1"))
                return None
            found = str(connection.execute(sa.text("PRAGMA quick_check(1)")).scalar())
            return None if found == "ok" else found
    except DatabaseError as error:
        return str(error.orig)


def free_bytes(folder: Path) -> int:
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize


def durable_write_ms(folder: Path, *, size: int = 65_536, times: int = 5) -> float:
    """Return the median time to append `size` bytes and make them durable.

    Raises:
        OSError: the folder cannot be written.
    """
    path = folder / f".doctor.{os.getpid()}.tmp"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    taken = []
    try:
        for _ in range(times):
            started = time.perf_counter()
            os.write(handle, bytes(size))
            os.fsync(handle)
            taken.append((time.perf_counter() - started) * 1000)
    finally:
        os.close(handle)
        path.unlink()
    return sorted(taken)[times // 2]
