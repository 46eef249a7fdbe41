"""The kinds of evaluator: which module a worker runs, what it needs, what it may use."""

from dataclasses import dataclass

_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of evaluator; times in seconds, sizes in bytes.

    `wall_s` bounds one request, `cpu_s` the life of a worker, `requests` how many it answers in it.
    `requires` names the packages outside the standard library that its module imports.
    """

    name: str
    module: str
    requires: tuple[str, ...] = ()
    import_paths: tuple[str, ...] = ()
    memory_bytes: int = 256 * _MB
    cpu_s: int = 60
    wall_s: float = 5.0
    max_frame_bytes: int = 16 * _MB
    requests: int = 1000


JINJA2 = Kind("jinja2", "storage.engine.sandbox.inside.jinja2", requires=("minijinja",))
# an answer of a model is held against its schema in microseconds, or the schema is made to take for ever
JSON_SCHEMA = Kind(
    "json schema",
    "storage.engine.sandbox.inside.json_schema",
    requires=("jsonschema_rs",),
    cpu_s=120,
    wall_s=2.0,
    requests=100_000,
)


def _of_rows(language: str, *requires: str, memory_mb: int = 512) -> Kind:
    """One over rows: a worker serves one operation, and may be asked a thousand times a minute."""
    return Kind(
        language.replace("_", " "),
        f"storage.engine.sandbox.inside.{language}",
        requires,
        memory_bytes=memory_mb * _MB,
        cpu_s=300,
        max_frame_bytes=64 * _MB,
        requests=100_000,
    )


JINJA2_ROWS = _of_rows("jinja2_rows", "minijinja")
PYTHON = _of_rows("python")
JAVASCRIPT = _of_rows("javascript", "_quickjs")
SQL = _of_rows("sql", "duckdb", memory_mb=1024)
