"""The sandbox as the verbs use it: evaluators bound to the caller's workspace, and the state of its walls."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

from storage.domain.column_types.binding import CodeReads
from storage.domain.column_types.code import JAVASCRIPT as IN_JAVASCRIPT
from storage.domain.column_types.code import PYTHON as IN_PYTHON
from storage.domain.column_types.code import SQL as IN_SQL
from storage.domain.errors import InvalidConfig, PromptlakeError
from storage.domain.findings import Finding, ok, warning
from storage.domain.keys import Principal
from storage.domain.walls import Wall, fallen
from storage.engine.sandbox.code import Evaluated, Evaluation, SandboxedCode
from storage.engine.sandbox.kinds import JAVASCRIPT, JINJA2, JINJA2_ROWS, JSON_SCHEMA, PYTHON, SQL, Kind
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.schemas import SandboxedSchema
from storage.engine.sandbox.templates import SandboxedJinja2
from storage.store import Store

__all__ = [
    "Evaluated",
    "Evaluation",
    "SandboxedSchema",
    "check_sandbox",
    "code_of",
    "engine_of",
    "jinja2_of",
    "jinja2_rows_of",
    "read_code",
    "schema_of",
    "walls",
]

_KINDS: Mapping[str, Kind] = {IN_PYTHON: PYTHON, IN_JAVASCRIPT: JAVASCRIPT, IN_SQL: SQL}
# A query has a price of its own, so that more rows go into one.
_BATCH_ROWS: Mapping[str, int] = {IN_PYTHON: 5_000, IN_JAVASCRIPT: 5_000, IN_SQL: 20_000}
# Raised when what an evaluator makes of the same code and values changes.
_REVISION = 1


def jinja2_of(store: Store, who: Principal) -> SandboxedJinja2:
    """Return the jinja2 evaluator of the caller's workspace; no process is started before it is asked."""
    return SandboxedJinja2(store.sandbox, who.workspace_id)


def code_of(store: Store, who: Principal, language: str) -> SandboxedCode:
    """Return the evaluator of a language for the caller's workspace; its process starts when it is asked."""
    return SandboxedCode(store.sandbox, _KINDS[language], who.workspace_id, batch_rows=_BATCH_ROWS[language])


def schema_of(store: Store, who: Principal, schema: Mapping[str, Any]) -> SandboxedSchema:
    """Return a JSON schema that values are held against; no process is started before it is asked."""
    return SandboxedSchema(store.sandbox, who.workspace_id, schema)


@contextmanager
def jinja2_rows_of(store: Store, who: Principal, texts: Sequence[str]) -> Iterator[Evaluation]:
    """Render jinja2 texts over rows in a block: a row's value is the list of its texts.

    Raises:
        InvalidConfig: a text does not parse.
        Unguarded: nothing is evaluated on this machine.
        Unavailable: no worker became free.
    """
    renderer = SandboxedCode(store.sandbox, JINJA2_ROWS, who.workspace_id, where="template")
    with renderer.opened(list(texts)) as evaluation:
        yield evaluation


def read_code(store: Store, who: Principal, language: str, code: str) -> CodeReads:
    """Check that code parses, and return which columns it reads.

    Raises:
        InvalidConfig: it does not parse, or is nothing that its language takes; names line and position.
        Unguarded: nothing is evaluated on this machine.
        Unavailable: no worker became free.
    """
    match code_of(store, who, language).inspect(code):
        case {"titles": list() as titles, "others": bool() as others} if all(
            isinstance(title, str) for title in titles
        ):
            return CodeReads(tuple(titles), others)
    raise InvalidConfig("config.code: what it reads cannot be told")


@cache
def engine_of(language: str) -> str:
    """Name the engine that computes a language, with its version: they decide what the same code gives."""
    engines = {
        IN_PYTHON: lambda: f"python {python_version()}",
        IN_JAVASCRIPT: lambda: f"quickjs-ng {_installed('quickjs-ng')}",
        IN_SQL: lambda: f"duckdb {_installed('duckdb')}",
        "jinja2": lambda: f"minijinja {_installed('minijinja')}",
    }
    return f"{engines[language]()}, sandbox {_REVISION}"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def walls(kind: Kind = JINJA2) -> tuple[Wall, ...]:
    """Start a worker, have it attack its walls, and return what it found; needs no store."""
    pool = Pool()
    try:
        return pool.walls(kind)
    except PromptlakeError as error:
        return (Wall("start", stands=False, detail=error.message),)
    finally:
        pool.close()


def check_sandbox() -> list[Finding]:
    """Say which walls of the sandbox stand on this machine, and which engines start behind them."""
    found = walls(JINJA2)
    if fallen(found):
        return [
            _missing(wall, "jinja2 templates and code columns are refused")
            for wall in found
            if not wall.stands
        ]
    standing = ", ".join(wall.name for wall in found if wall.stands)
    return [
        ok("sandbox", f"walls that stand: {standing}"),
        *(_missing(wall, "") for wall in found if not wall.stands),
        *(_check_engine(name) for name in (IN_PYTHON, IN_JAVASCRIPT, IN_SQL)),
        *_check_schemas(),
    ]


def _check_engine(language: str) -> Finding:
    missing = fallen(walls(_KINDS[language]))
    if not missing:
        return ok("sandbox", f"{language} columns: {engine_of(language).partition(',')[0]} computes")
    reasons = "; ".join(f"{wall.name}: {wall.detail}" for wall in missing)
    return warning(
        "sandbox", f"{language} columns: {reasons}", f"{language} columns are refused; others work."
    )


def _check_schemas() -> Iterator[Finding]:
    missing = fallen(walls(JSON_SCHEMA))
    if missing:
        reasons = "; ".join(f"{wall.name}: {wall.detail}" for wall in missing)
        yield warning(
            "sandbox", f"JSON schemas: {reasons}", "Schemas with references are refused; others work."
        )


def _missing(wall: Wall, consequence: str) -> Finding:
    advice = (
        f"{consequence}; f-string templates work. Use Linux on x86_64 or aarch64, and a container "
        "profile that allows seccomp filters."
        if wall.needed
        else "The other walls hold without it; run the service as a user of its own."
    )
    return warning("sandbox", f"{wall.name}: {wall.detail}", advice)
