"""Sheets as DuckDB views: SELECTs over the segments that a snapshot names, with its overlay on top."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from storage.domain.columns import Column
from storage.domain.encodings import JSON_ENCODINGS, Encoding
from storage.domain.manifests import Fill, Manifest, Part, Source, Stored
from storage.domain.overlay import KEPT
from storage.domain.sheet_upkeep import flat
from storage.domain.view_names import ROW_INDEX, distinct_names
from storage.engine.arrow_values import arrow_array, compact_json
from storage.engine.data_root import DataRoot
from storage.engine.log_sql import quoted
from storage.engine.sheet_types import column_encodings
from storage.engine.snapshots import Snapshot

if TYPE_CHECKING:
    import duckdb

_TYPES: dict[Encoding, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "json": "VARCHAR",
    "messages": "VARCHAR",
}


def name_quoted(name: str) -> str:
    """Spell a name for SQL; a NUL cannot stand in one."""
    return '"' + name.replace("\0", "").replace('"', '""') + '"'


def create_sheet_view(connection: "duckdb.DuckDBPyConnection", schema: str, name: str, query: str) -> None:
    """Create a view in a schema (spelled for SQL), which is made where it is missing."""
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    connection.execute(f"CREATE OR REPLACE VIEW {schema}.{name_quoted(name)} AS {query}")


def overlay_table(snapshot: Snapshot, columns: Sequence[Column]) -> pa.Table | None:
    """Return what the overlay says, a row a row index: h1 (was it written) and v1 (what) of column number 1.

    None when it says nothing of these columns.
    """
    held = flat(snapshot.overlay).cells
    encodings = column_encodings(snapshot, [column.no for column in columns])
    written: dict[int, dict[int, Any]] = {}
    for column in columns:
        for row, entry in held.get(column.no, {}).items():
            index = snapshot.manifest.find_index(row)
            if entry.value is not KEPT and index is not None:
                written.setdefault(column.no, {})[index] = entry.value
    if not written:
        return None
    indices = sorted({index for cells in written.values() for index in cells})
    arrays = {"row_index": pa.array(indices, pa.int64())}
    for no, cells in written.items():
        arrays[f"h{no}"] = pa.array([index in cells for index in indices])
        values = [cells.get(index) for index in indices]
        arrays[f"v{no}"] = arrow_array(_fitting(values, encodings[no]), encodings[no])
    return pa.table(arrays)


def _fitting(values: Sequence[Any], encoding: Encoding) -> Sequence[Any]:
    # 1 in a column of 1.5 is a double there
    return [None if value is None else float(value) for value in values] if encoding == "double" else values


def sheet_query(
    data: DataRoot,
    snapshot: Snapshot,
    columns: Sequence[Column],
    overlay: str | None,
    overlaid: Collection[str] = (),
) -> str:
    """Spell a SELECT of `row_index` and the columns by title.

    `overlay` is a relation, of `overlay_table`, with the columns `overlaid`.
    """
    encodings = column_encodings(snapshot, [column.no for column in columns])
    base = " UNION ALL ".join(_selects(data, snapshot.manifest, columns, encodings)) or _empty(encodings)
    shown = ["b.row_index AS " + name_quoted(ROW_INDEX)]
    for column, name in zip(
        columns, distinct_names([c.title for c in columns], taken=[ROW_INDEX]), strict=True
    ):
        value = f"b.c{column.no}"
        if f"h{column.no}" in overlaid:
            value = f"CASE WHEN o.h{column.no} THEN o.v{column.no} ELSE {value} END"
        shown.append(f"{value} AS {name_quoted(name)}")
    joined = "" if overlay is None else f" LEFT JOIN {overlay} o ON o.row_index = b.row_index"
    return f"SELECT {', '.join(shown)} FROM ({base}) b{joined}"  # noqa: S608


def _empty(encodings: Mapping[int, Encoding]) -> str:
    nulls = [f"CAST(NULL AS {_TYPES[encoding]}) AS c{no}" for no, encoding in encodings.items()]
    return f"SELECT {', '.join(['CAST(NULL AS BIGINT) AS row_index', *nulls])} WHERE false"


def _selects(
    data: DataRoot, manifest: Manifest, columns: Sequence[Column], encodings: Mapping[int, Encoding]
) -> Iterable[str]:
    """Yield a SELECT for each mapping of sources; parts that share one are ranges of its rows."""
    together: dict[int, list[tuple[Part, int]]] = {}
    index = 0
    for part in manifest.parts:
        together.setdefault(id(part.columns), []).append((part, index))
        index += part.count
    for parts in together.values():
        yield _select(data, parts, columns, encodings)


def _select(
    data: DataRoot,
    parts: Sequence[tuple[Part, int]],
    columns: Sequence[Column],
    encodings: Mapping[int, Encoding],
) -> str:
    sources = parts[0][0].columns
    aliases: dict[tuple[str, int], str] = {}
    values = [
        f"{_value(sources.get(column.no), encodings[column.no], aliases)} AS c{column.no}"
        for column in columns
    ]
    ranges = ", ".join(f"({part.offset}, {part.offset + part.count}, {index})" for part, index in parts)
    listed = f"(VALUES {ranges}) r(first_place, end_place, first_index)"
    if not aliases:
        rows = (
            "SELECT first_index + unnest(range(end_place - first_place)) AS row_index "  # noqa: S608
            f"FROM {listed}"
        )
        return f"SELECT {', '.join(['row_index', *values])} FROM ({rows})"  # noqa: S608
    place, files = _files(data, aliases)
    row_index = f"CAST({place} - r.first_place + r.first_index AS BIGINT) AS row_index"
    if len(parts) == 1:
        joined = f"{files} JOIN {listed} ON {place} >= r.first_place AND {place} < r.end_place"
        part, _ = parts[0]
        # a plain bound, so that groups of rows outside are not read
        (_, start), alias = next(iter(aliases.items()))
        first = start + part.offset
        where = f"{alias}.file_row_number BETWEEN {first} AND {first + part.count - 1}"
    else:
        joined = f"{files} ASOF JOIN {listed} ON {place} >= r.first_place"
        where = f"{place} < r.end_place"
    return f"SELECT {', '.join([row_index, *values])} FROM {joined} WHERE {where}"  # noqa: S608


def _files(data: DataRoot, aliases: Mapping[tuple[str, int], str]) -> tuple[str, str]:
    """Return the place of a row among those of the sources, and the files joined by it."""
    spelled = ""
    first_place = ""
    for (key, start), alias in aliases.items():
        file = f"read_parquet({quoted(str(data.path(key)))}, file_row_number = true) {alias}"
        place = f"({alias}.file_row_number - ({start}))"
        if spelled:
            spelled += f" JOIN {file} ON {place} = {first_place}"
        else:
            spelled, first_place = file, place
    return first_place, spelled


def _value(source: Source | None, encoding: Encoding, aliases: dict[tuple[str, int], str]) -> str:
    if isinstance(source, Stored):
        at = (source.segment.key, source.start)
        alias = aliases.setdefault(at, f"s{len(aliases)}")
        field = f"{alias}.c{source.field}"
        held = source.segment.encodings[source.field]
        if encoding in JSON_ENCODINGS and held not in JSON_ENCODINGS:
            return f"CAST(to_json({field}) AS VARCHAR)"
        return field
    value = source.value if isinstance(source, Fill) else None
    if value is None:
        return f"CAST(NULL AS {_TYPES[encoding]})"
    text = value if encoding == "text" else compact_json(value) if encoding == "json" else json.dumps(value)
    spelled = "||chr(0)||".join(quoted(part) for part in text.split("\0"))
    return f"CAST({spelled} AS {_TYPES[encoding]})"
