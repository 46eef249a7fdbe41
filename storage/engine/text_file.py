"""Text files as UTF-8: the byte order mark read and dropped, UTF-16 transcoded into a scratch file."""

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from storage.domain.errors import Unavailable
from storage.domain.file_imports import check_start
from storage.domain.imports import ImportRefused

_CHUNK = 1 << 20
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@contextmanager
def utf8_text(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file whose bytes from the returned offset on should be UTF-8.

    Bytes that are said to be UTF-8 are not checked here.

    Raises:
        ImportRefused: it is empty, begins like a binary file, or is no UTF-16 though it says so.
        Unavailable: the disk is full.
    """
    with path.open("rb") as file:
        start = file.read(8)
        check_start(start)
        encoding = _UTF16.get(start[:2])
        if encoding is None:
            yield file, len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
            return
        with tempfile.TemporaryFile(dir=path.parent, prefix=".utf8-") as scratch:
            file.seek(2)
            _transcode(file, encoding, scratch)
            yield scratch, 0


def _transcode(source: BinaryIO, encoding: str, target: BinaryIO) -> None:
    decoder = codecs.getincrementaldecoder(encoding)()
    chunk = source.read(_CHUNK)
    try:
        while chunk:
            target.write(decoder.decode(chunk).encode())
            chunk = source.read(_CHUNK)
        target.write(decoder.decode(b"", final=True).encode())
        target.flush()
    except UnicodeError as error:
        raise ImportRefused("The file begins as UTF-16 but is no valid UTF-16 text") from error
    except OSError as error:
        raise Unavailable("The data folder cannot be written now (disk full?).") from error


def size_of(file: BinaryIO) -> int:
    """Return the size of an open file in bytes."""
    at = file.tell()
    size = file.seek(0, 2)
    file.seek(at)
    return size
