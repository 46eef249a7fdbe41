"""What code reads of a row, by language: found where the configuration of a column is saved."""

from collections.abc import Callable, Mapping

from storage.domain.column_types.binding import CodeReads
from storage.domain.column_types.code import PYTHON
from storage.domain.keys import Principal
from storage.domain.python_reads import read_python
from storage.store import Store

Reader = Callable[[Store, Principal, str], CodeReads]

READERS: Mapping[str, Reader] = {PYTHON: lambda _store, _who, code: read_python(code)}


def read_code(store: Store, who: Principal, language: str, code: str) -> CodeReads | None:
    """Return what code reads; None for a language whose code is not looked into.

    Raises:
        InvalidConfig: the code does not parse; names line and position.
    """
    reader = READERS.get(language)
    return None if reader is None else reader(store, who, code)
