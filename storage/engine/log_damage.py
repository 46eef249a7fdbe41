"""What DuckDB says of a file that is missing or damaged."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from storage.domain.errors import Unavailable

_OF_A_FILE = re.compile(r"\bfile\b|parquet|bitpacked|decompression", re.IGNORECASE)


class DamagedFileError(Unavailable):
    """A file that was asked about is missing, or is not as it was written."""


@contextmanager
def damage_told() -> Iterator[None]:
    """Tell damage of files apart from questions without an answer.

    Raises:
        DamagedFileError: one could not be read.
    """
    import duckdb  # noqa: PLC0415

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, OSError, UnicodeDecodeError) as error:
        if not _is_of_a_file(error):
            raise
        raise DamagedFileError(
            "A file of logs is missing or damaged: `promptlake doctor` names it"
        ) from error


def _is_of_a_file(error: Exception) -> bool:
    import duckdb  # noqa: PLC0415

    if isinstance(error, OSError):  # Arrow's readers hand on what DuckDB says
        return error.errno is None and _OF_A_FILE.search(str(error)) is not None
    if isinstance(error, UnicodeDecodeError):  # DuckDB quotes the bytes that are no text
        return True
    # footers and headers of pages are read below DuckDB's own kinds of error; names of columns are bytes, too
    bare = type(error) is duckdb.Error or isinstance(error, duckdb.IOException | duckdb.BinderException)
    told = isinstance(error, duckdb.InvalidInputException) and _OF_A_FILE.search(str(error)) is not None
    return bare or told
