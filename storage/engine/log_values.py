"""The dictionary of a segment's values: how often each stands in it, a Parquet file sorted by field.

Columns: `field` (as suggestions name it), `key` (of nested fields, the prompt's id of `prompt`; else empty),
`value` (text; null: values longer than `MOST_CHARS`, which are only counted), `count` (of logs), `ids` (of
the logs, in order, where there are at most `MOST_IDS`; else null). It speaks of the file alone: deleted logs
stay counted until the segment is rewritten, patches are not in it.
"""

from collections.abc import Mapping, Sequence

from storage.engine.data_root import DataRoot
from storage.engine.facet_sql import register_facets, with_facets
from storage.engine.log_sql import LOG_NAMES, duck, quoted

MOST_CHARS = 256
MOST_IDS = 16
_OPTIONS = "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 8192)"


def _plain(column: str) -> str:
    return f"SELECT id, '' AS key, CAST({column} AS VARCHAR) AS value FROM logs_"  # noqa: S608


def _each(values: str) -> str:
    return f"SELECT id, '' AS key, unnest(list_distinct({values})) AS value FROM logs_"  # noqa: S608


def _pairs(keys: str, values: str) -> str:
    return f"SELECT id, unnest({keys}) AS key, unnest({values}) AS value FROM logs_"  # noqa: S608


_DISTINCT = "list_distinct(output_values)"
_QUERIES: Mapping[str, str] = {
    "engine": _plain("model"),
    "provider_type": _plain("provider"),
    "status": _plain("status"),
    "prompt_id": _plain("prompt_id"),
    "prompt": "SELECT id, CAST(prompt_id AS VARCHAR) AS key, prompt_name AS value FROM logs_",
    "tags": _each("tags"),
    "metadata_keys": _each("map_keys(metadata)"),
    "tool_names": _each("output_tool_names"),
    "output_keys": _each("list_transform(output_values, lambda p: p.key)"),
    "input_variable_keys": _each("json_keys(prompt_input_variables)"),
    "metadata_values": _pairs("map_keys(metadata)", "map_values(metadata)"),
    "output_values": _pairs(
        f"list_transform({_DISTINCT}, lambda p: p.key)", f"list_transform({_DISTINCT}, lambda p: p.value)"
    ),
    "input_variable_values": _pairs(
        "json_keys(prompt_input_variables)", "json_extract_string(prompt_input_variables, '$.*')"
    ),
}
FIELDS = tuple(_QUERIES)


def _counted(field: str, query: str) -> str:
    short = f"CASE WHEN length(value) <= {MOST_CHARS} THEN value END"
    # the least ids, one more than are kept: few values have so many logs, and none costs more than that
    ids = f"CASE WHEN count(*) <= {MOST_IDS} THEN min(id, {MOST_IDS}) END"
    return (
        f"SELECT {quoted(field)} AS field, coalesce(key, '') AS key, {short} AS value, count(*) AS count, "  # noqa: S608
        f"{ids} AS ids FROM ({query}) WHERE value IS NOT NULL GROUP BY 1, 2, 3"
    )


def write_values(data: DataRoot, segment_key: str, key: str) -> int:
    """Write the dictionary of a segment under a key; return its bytes.

    Raises:
        Unavailable: the disk is full.
    """
    rows = f"SELECT {LOG_NAMES} FROM read_parquet({quoted(str(data.path(segment_key)))})"  # noqa: S608
    counted = " UNION ALL ".join(_counted(field, query) for field, query in _QUERIES.items())
    with duck(threads=1) as connection, data.writing(key) as path:
        register_facets(connection)
        narrow = f"SELECT * EXCLUDE (input, output, parameters) FROM ({with_facets(rows)})"  # noqa: S608
        connection.execute(f"CREATE TEMP TABLE logs_ AS {narrow}")
        query = f"SELECT * FROM ({counted}) ORDER BY field, key, value NULLS LAST"  # noqa: S608
        connection.execute(f"COPY ({query}) TO {quoted(str(path))} {_OPTIONS}")
        return path.stat().st_size


def values_query(paths: Sequence[str]) -> str:
    """SELECT of `value` and `count` of a field and key (two parameters) from some dictionaries, summed.

    A row whose value is null counts the values that are too long to be listed.
    """
    files = ", ".join(quoted(path) for path in paths)
    return (
        f"SELECT value, CAST(sum(count) AS BIGINT) AS count FROM read_parquet([{files}]) "  # noqa: S608
        "WHERE field = ? AND key = ? GROUP BY value"
    )


def holders_query(paths: Sequence[str]) -> str:
    """SELECT of the `filename` of dictionaries that may hold a field, key and value (three parameters)."""
    files = ", ".join(quoted(path) for path in paths)
    return (
        f"SELECT DISTINCT filename FROM read_parquet([{files}], filename = true) "  # noqa: S608
        "WHERE field = ? AND key = ? AND (value = ? OR value IS NULL)"
    )
