"""Which columns a SQL expression reads, and what it may not hold: rules over the engine's parse tree."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from storage.domain.column_types.binding import CodeReads

# Words that read like columns and are functions.
_CLOCK = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
_REFUSED = {"PARAMETER": "nothing is bound to a parameter"}
# In a subquery these speak of its own rows.
_REFUSED_OUTSIDE = {
    "WINDOW": "a window function looks at other rows",
    "STAR": "`*` names no columns",
    "POSITIONAL_REFERENCE": "a column is read by its name",
}
_UNNESTING = frozenset({"unnest", "unlist"})

Node = Mapping[str, Any]


class NotAnExpression(ValueError):
    """The text is no single expression over the values of one row."""


def read_sql(parsed: Node, aggregates: Collection[str]) -> CodeReads:
    """Return the columns that `SELECT (expression)` reads; `aggregates` are the engine's, in lower case.

    Raises:
        NotAnExpression: it is more than one expression, or looks beyond its row.
    """
    statements = parsed["statements"]
    select = statements[0]["node"]
    if (
        len(statements) != 1
        or select.get("type") != "SELECT_NODE"
        or len(select["select_list"]) != 1
        or select["from_table"]["type"] != "EMPTY"
        or select["modifiers"]
        or any(select.get(clause) for clause in ("where_clause", "group_expressions", "having", "qualify"))
    ):
        raise NotAnExpression("one expression is wanted, as in the list of a SELECT")
    expression = select["select_list"][0]
    if expression.get("function_name") == "row" and not expression["arguments"]:
        raise NotAnExpression("the expression is missing")
    titles = dict.fromkeys(_titles(expression, frozenset(aggregates), frozenset()))
    return CodeReads(tuple(titles))


def _titles(node: Any, aggregates: frozenset[str] | None, bound: frozenset[str]) -> Iterator[str]:
    """Walk below a node; `aggregates` is None in a subquery, which has rows of its own."""
    if isinstance(node, list):
        for part in node:
            yield from _titles(part, aggregates, bound)
        return
    if not isinstance(node, Mapping):
        return
    kind = node.get("class")
    if kind in _REFUSED or (aggregates is not None and kind in _REFUSED_OUTSIDE):
        raise NotAnExpression((_REFUSED | _REFUSED_OUTSIDE)[kind])
    if kind == "COLUMN_REF":
        yield from _column(node["column_names"], bound)
        return
    if kind == "LAMBDA":
        yield from _titles(node["expr"], aggregates, bound | _parameters(node["lhs"]))
        return
    if kind == "FUNCTION" and aggregates is not None:
        _check_function(str(node["function_name"]).lower(), aggregates)
    inner = None if kind == "SUBQUERY" else aggregates
    for key in node:
        yield from _titles(node[key], inner, bound)


def _column(names: list[str], bound: frozenset[str]) -> Iterator[str]:
    title = names[1] if names[0].lower() == "data" and len(names) > 1 else names[0]
    if title.lower() not in bound and title.lower() not in _CLOCK:
        yield title


def _parameters(node: Any) -> frozenset[str]:
    """The names that a lambda gives to its arguments: one, or a row of them."""
    if isinstance(node, list):
        return frozenset().union(*(_parameters(part) for part in node))
    if not isinstance(node, Mapping):
        return frozenset()
    if node.get("class") == "COLUMN_REF":
        return frozenset(name.lower() for name in node["column_names"])
    return frozenset().union(*(_parameters(part) for part in node.values()))


def _check_function(name: str, aggregates: frozenset[str]) -> None:
    if name in aggregates:
        raise NotAnExpression(f"`{name}` aggregates over rows; a cell is made of its own row")
    if name in _UNNESTING:
        raise NotAnExpression(f"`{name}` makes rows; a cell is one value")
