"""What DuckDB says of a file that is missing or damaged."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_OF_A_FILE = re.compile(r"\bfile\b|parquet|bitpacked|thrift|TProtocol", re.IGNORECASE)


class DamagedFileError(Exception):
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
    except duckdb.IOException as error:
        raise DamagedFileError from error
    except duckdb.InvalidInputException as error:
        if _OF_A_FILE.search(str(error)):
            raise DamagedFileError from error
        raise
