"""Facts of answers in DuckDB: columns that segments keep beside the promised ones, made by one function.

Whoever writes logs into a file writes them too: `with_facets(select)` over a SELECT that has `output`, on a
connection that went through `register_facets`; who copies files copies `FACET_NAMES`. Files that lack them
are read as the tail is: a query that asks for facts makes them.
"""

import re
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from storage.domain.facets import PLAIN, Facets, facets_of

if TYPE_CHECKING:
    import duckdb

FUNCTION = "log_facets_"
_STRUCTURE = (
    "STRUCT(is_json BOOLEAN, is_tool_call BOOLEAN, tool_names VARCHAR[],"
    ' "values" STRUCT("key" VARCHAR, "value" VARCHAR)[])'
)
FACET_COLUMNS = {
    "output_is_json": "is_json",
    "output_is_tool_call": "is_tool_call",
    "output_tool_names": "tool_names",
    "output_values": '"values"',
}
# a string that begins as a JSON object does, or the name of something that calls a tool
_MAY_HOLD_MORE = re.compile(r'"(?:\\[nrt]|[ ])*\{|"tool_|"function_call"')
FACET_NAMES = ", ".join(FACET_COLUMNS)


def with_facets(select: str) -> str:
    """SELECT of a SELECT's columns and the facet columns, made from its column `output`."""
    made = ", ".join(f"facets_.{part} AS {name}" for name, part in FACET_COLUMNS.items())
    return (
        f"SELECT * EXCLUDE (facets_), {made} FROM (SELECT *, {FUNCTION}(output) AS facets_ FROM ({select}))"  # noqa: S608
    )


def register_facets(connection: "duckdb.DuckDBPyConnection") -> None:
    """Let a connection's queries make facet columns."""
    from duckdb.func import ARROW  # noqa: PLC0415

    connection.create_function(FUNCTION, _arrow_facets, ["varchar"], _STRUCTURE, type=ARROW)


def _arrow_facets(outputs: Any) -> Any:  # DuckDB looks at these annotations
    import pyarrow as pa  # noqa: PLC0415

    found = [_facets(output) for output in outputs.to_pylist()]
    pair = pa.struct([("key", pa.string()), ("value", pa.string())])
    columns: dict[str, Any] = {
        "is_json": pa.array([one.is_json for one in found], pa.bool_()),
        "is_tool_call": pa.array([one.is_tool_call for one in found], pa.bool_()),
        "tool_names": pa.array([one.tool_names for one in found], pa.list_(pa.string())),
        "values": pa.array(
            [[{"key": key, "value": value} for key, value in one.values] for one in found], pa.list_(pair)
        ),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _facets(output: str) -> Facets:
    # most answers are plain text, and show it without being read
    return facets_of(from_json(output)) if _MAY_HOLD_MORE.search(output) else PLAIN
