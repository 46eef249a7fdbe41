"""Uploads: received into the spool, read by the run that imports them, kept for its repetition."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

from storage.domain.errors import NotFound
from storage.domain.imports import NewSheet, Started
from storage.domain.keys import Principal
from storage.domain.uploads import Upload
from storage.engine.rows.uploads import select_open_uploads
from storage.engine.spool import SpoolFile, sweep_spool, upload_key
from storage.imports import start_file_import
from storage.store import Store


class Incoming:
    """An upload on its way in; its file is made with its first byte, or when it is parked empty."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._file: SpoolFile | None = None

    def write(self, piece: bytes) -> None:
        """Add bytes, at most `settings.max_file_bytes` in all.

        Raises:
            PayloadTooLarge: there are more.
            Unavailable: the disk is full.
        """
        self._opened().write(piece)

    def park(self) -> Upload:
        """Make the file durable and return what it is.

        Raises:
            Unavailable: the disk is full; nothing is left.
        """
        return self._opened().park()

    def discard(self) -> None:
        """Remove what was written, if anything was."""
        if self._file:
            self._file.discard()

    def _opened(self) -> SpoolFile:
        if self._file is None:
            self._file = SpoolFile(
                self._store.data, self._store.new_id(), self._store.settings.max_file_bytes
            )
        return self._file


def start_upload_import(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    target: NewSheet | UUID,
    file_name: str,
    upload: Upload,
    operation_id: str | None,
    request_hash: str,
) -> Started:
    """Queue the import of an upload (E8), which stays in the spool only if an operation now names it.

    `request_hash` is of the validated fields other than `operation_id` and of the decoded file.

    Raises:
        As `storage.imports.start_file_import`.
    """
    try:
        started = start_file_import(
            store,
            who,
            table_id=table_id,
            target=target,
            operation_id=operation_id,
            request_hash=request_hash,
            spec={"file_name": file_name, "upload": upload.spec()},
        )
    except BaseException:
        discard_upload(store, upload)
        raise
    if started.repeated:
        discard_upload(store, upload)
    return started


def discard_upload(store: Store, upload: Upload) -> None:
    """Remove an upload that no operation names."""
    store.data.remove(upload_key(upload.id))


def get_upload_path(store: Store, upload: Upload) -> Path:
    """Return the file of an upload, to be read and left as it is.

    Raises:
        NotFound: it was swept.
    """
    path = store.data.path(upload_key(upload.id))
    if not path.is_file():
        raise NotFound(f"The uploaded file is gone: files are kept {store.settings.upload_days} days")
    return path


def sweep_uploads(store: Store) -> int:
    """Remove uploads older than `settings.upload_days` that no open operation reads; return how many."""
    with store.catalog.read() as connection:
        keep = select_open_uploads(connection)
    before = store.now() - timedelta(days=store.settings.upload_days)
    return sweep_spool(store.data, older_than=before.timestamp(), keep=keep)
