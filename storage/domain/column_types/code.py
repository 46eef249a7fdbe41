"""code: a function over the row, in PYTHON, JAVASCRIPT or SQL; which columns it reads stands in the code."""

from typing import Any

from storage.domain.column_types.binding import SOURCES, Binder, CodeReads, ColumnType, config_schema
from storage.domain.errors import InvalidConfig

PYTHON, JAVASCRIPT, SQL = "PYTHON", "JAVASCRIPT", "SQL"
LANGUAGES = (PYTHON, JAVASCRIPT, SQL)

SCHEMA = config_schema(
    "CodeConfig",
    {
        "code": {"type": "string", "minLength": 1, "maxLength": 200_000},
        "language": {"type": "string", "enum": list(LANGUAGES), "description": "PYTHON by default."},
        "sources": {**SOURCES, "minItems": 0, "description": "By default those that the code names."},
    },
    ("code",),
    {"code": 'return data["Answer"].strip() == data["Expected"].strip()', "language": PYTHON},
)


def bind(config: dict[str, Any], binder: Binder) -> dict[str, Any]:
    """Bind the given sources, or those that the code names.

    Each edge tells the name under which the code knows the column, which stays when the column is renamed.
    """
    language = config.get("language", PYTHON)
    reads = binder.read_code(language, config["code"])
    bound = {**config, "language": language}
    if "sources" in config:
        bound = {**bound, "sources": binder.sources(config["sources"], named=True)}
    elif reads is None or reads.others:
        raise InvalidConfig(_unknown(language, reads))
    else:
        for title in reads.titles:
            # the names of SQL have no case
            like = binder.find_like(title) if language == SQL and binder.find(title) is None else None
            binder.source(like or title, "code", variable_name=title)
    if language == SQL:
        _check_names(binder)
    return bound


def _check_names(binder: Binder) -> None:
    """Raise InvalidConfig if one name of SQL would mean two columns."""
    seen: dict[str, tuple[str, str]] = {}
    for edge in binder.edges:
        name = str(edge["config_meta"]["variable_name"])
        other, column_id = seen.setdefault(name.lower(), (name, edge["column_id"]))
        if column_id != edge["column_id"]:
            raise InvalidConfig(f"config.code: {other!r} and {name!r} are one name in SQL, for two columns")


def _unknown(language: str, reads: CodeReads | None) -> str:
    if reads is None:
        return f"config.sources: is required with {language}"
    return 'config.sources: is required, for the code reads `data` by other means than data["title"]'


TYPE = ColumnType(SCHEMA, bind)
