"""The spool: uploads written as they come, parked by rename under the data root, swept by age."""

import errno
import os
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from typing import Never
from uuid import UUID

from storage.domain.errors import PayloadTooLarge, Unavailable
from storage.domain.uploads import Upload
from storage.engine.data_root import DataRoot, sync_folder

_FOLDER = "spool"
_UNFINISHED = ".part"


def upload_key(upload_id: UUID) -> str:
    """Return where below the data root an upload is parked."""
    return f"{_FOLDER}/{upload_id}"


class SpoolFile:
    """One upload being written. Park it or discard it; a crash leaves a part that the sweep removes."""

    def __init__(self, root: DataRoot, upload_id: UUID, max_bytes: int) -> None:
        self._id = upload_id
        self._max_bytes = max_bytes
        self._hash = sha256()
        self._bytes = 0
        self._final = root.path(upload_key(upload_id))
        self._part = self._final.with_name(self._final.name + _UNFINISHED)
        try:
            self._final.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            _refuse(error)

    def write(self, piece: bytes) -> None:
        """Add bytes.

        Raises:
            PayloadTooLarge: the file is over its limit.
            Unavailable: the disk is full.
        """
        self._bytes += len(piece)
        if self._bytes > self._max_bytes:
            raise PayloadTooLarge(f"The file is over {self._max_bytes} bytes")
        self._hash.update(piece)
        left = memoryview(piece)
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            _refuse(error)

    def park(self) -> Upload:
        """Make the file durable under its key.

        Raises:
            Unavailable: the disk is full; nothing is left.
        """
        try:
            os.fsync(self._handle)
            self._part.rename(self._final)
            sync_folder(self._final.parent)
        except OSError as error:
            self.discard()
            _refuse(error)
        self._close()
        return Upload(self._id, self._bytes, self._hash.hexdigest())

    def discard(self) -> None:
        """Remove what was written; harmless when nothing is there."""
        self._close()
        self._part.unlink(missing_ok=True)
        self._final.unlink(missing_ok=True)

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def sweep_spool(root: DataRoot, *, older_than: float, keep: Collection[UUID]) -> int:
    """Remove uploads (and parts that a crash left) written before a time (epoch seconds); return how many.

    Uploads in `keep` stay.
    """
    folder = root.path(_FOLDER)
    if not folder.is_dir():
        return 0
    kept = {str(one) for one in keep}
    swept = 0
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            if file.name not in kept and file.stat().st_mtime < older_than:
                file.unlink()
                swept += 1
    return swept


def _refuse(error: OSError) -> Never:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    reason = "the disk is full" if full else "the data folder cannot be written"
    raise Unavailable(f"The upload cannot be stored now: {reason}.") from error
