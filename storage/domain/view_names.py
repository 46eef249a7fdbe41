"""Names of views: titles as they are; where two differ in nothing but case, the later one gets a number."""

from collections.abc import Collection, Iterable

ROW_INDEX = "row_index"
OVERLAY = ".overlay-"
"""Stands in the keys of files that views read beside segments."""
RESERVED = frozenset({"main", "information_schema", "pg_catalog", "temp", "system", "published", "memory"})


def view_name(title: str) -> str:
    """Return the name that a title has in DuckDB, where a NUL cannot stand in one and none is empty."""
    return title.replace("\0", "") or "untitled"


def distinct_names(titles: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """Return a name for each title, in order: its own, or `title 2`, `title 3`, ... where that is taken."""
    used = {name.casefold() for name in taken}
    names = []
    for title in titles:
        plain = name = view_name(title)
        number = 1
        while name.casefold() in used:
            number += 1
            name = f"{plain} {number}"
        used.add(name.casefold())
        names.append(name)
    return names
