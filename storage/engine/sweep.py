"""Removes files of sheets that nothing names: what a crash left between writing and commit."""

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from storage.engine.catalog import Catalog
from storage.engine.data_root import DataRoot
from storage.engine.rows.segments import select_known_keys
from storage.engine.segments import FOLDER

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removed."""

    files: int
    bytes: int


def sweep_segments(catalog: Catalog, data: DataRoot, older_than: datetime) -> Swept:
    """Remove files that no row of the catalog names, temporary ones too, last written before a moment.

    It must lie further back than any import may take: an import's files are named only by its commit.
    """
    files = size = 0
    old = iter(data.files(FOLDER, before_epoch_s=older_than.timestamp()))
    while keys := list(islice(old, _AT_ONCE)):
        with catalog.read() as connection:
            known = select_known_keys(connection, keys)
        for key in keys:
            if key not in known:
                size += data.remove(key)
                files += 1
    return Swept(files, size)
