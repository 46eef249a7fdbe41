"""The folder of immutable files, named by URL; keys are relative, so that no row carries a path."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from urllib.parse import unquote, urlsplit

from storage.domain.errors import Unavailable


class DataRoot:
    """A local folder named by a `file://` URL. Files are written whole: temp, fsync, rename, fsync folder."""

    def __init__(self, url: str, *, make: bool = True) -> None:
        parts = urlsplit(url)
        if parts.scheme != "file":
            raise ValueError(f"Data URLs must be file:// for now, not {parts.scheme}://")
        self.url = url
        self._root = Path(unquote(parts.path))
        if make:
            self._root.mkdir(parents=True, exist_ok=True)

    def path(self, key: str) -> Path:
        """Return where the file of a key is (or will be)."""
        return self._root / key

    @contextmanager
    def writing(self, key: str) -> Iterator[Path]:
        """Yield a temporary path to write; publish it under `key` when the block ends well.

        Raises:
            Unavailable: the disk is full; nothing was published.
        """
        final = self.path(key)
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
        try:
            yield temporary
            sync_file(temporary)
            temporary.rename(final)
            sync_folder(final.parent)
        except OSError as error:
            raise Unavailable("The data folder cannot be written now (disk full?).") from error
        finally:
            temporary.unlink(missing_ok=True)

    def share(self, key: str, other: str) -> None:
        """Let a published file be there under another key, too: without its bytes being written, if it can.

        Raises:
            Unavailable: the disk is full; nothing was published.
        """
        with self.writing(other) as path:
            try:
                path.hardlink_to(self.path(key))
            except OSError:
                # a file system without links, or one with too many of them
                shutil.copyfile(self.path(key), path)

    @contextmanager
    def discarding(self, *keys: str) -> Iterator[None]:
        """Remove files that nothing names yet if the block fails, so that a full disk is not made fuller."""
        try:
            yield
        except BaseException:
            for key in keys:
                self.remove(key)
            raise

    def remove(self, key: str) -> int:
        """Remove a file; return its bytes, 0 if another removed it first."""
        path = self.path(key)
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        return size

    def files(self, folder: str, *, before_epoch_s: float) -> list[str]:
        """Keys of the files below a folder last written before a moment, temporary ones included.

        Others write, publish and remove meanwhile: what vanishes is left out.
        """
        found = []
        for root, _, names in os.walk(self.path(folder)):
            for path in (Path(root, name) for name in names):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < before_epoch_s:
                        found.append(str(path.relative_to(self._root)))
        return sorted(found)

    def free_bytes(self) -> int:
        stat = os.statvfs(self._root)
        return stat.f_bavail * stat.f_frsize


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Make a rename durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
