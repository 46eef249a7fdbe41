"""llm: a prompt written in the column, or an assertion about another column."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from pipelines.columns.asking import CHUNK_ROWS, Asking, Item, Prepared
from pipelines.columns.asks import REVISION, Ask, Reading, Verdicts, Words, with_schema
from pipelines.columns.fitting import Fitting
from pipelines.columns.models import Model, line_of, shares
from pipelines.columns.pace import Stretched, prompts_pace
from pipelines.columns.protocol import ColumnContext, Keys, RunContext, Runner, RunnerKind
from pipelines.columns.templates import Renderer, opened_renderer
from pipelines.columns.values import shown, to_list
from pipelines.providers.caller import opened_caller
from storage.domain.blueprints import CHAT, Text
from storage.domain.columns import Column
from storage.domain.llm_kwargs import find_llm_kwargs
from storage.domain.model_calls import PromptUse
from storage.domain.results import CellError, Chunk
from storage.domain.templates import F_STRING

NO_STATEMENT = CellError("invalid_config", "No statement: neither a text nor a JSON array of texts")
_JUDGE = (
    "You judge whether statements about a text are true. Answer with JSON alone: "
    '{"verdicts": [...]}, one true or false a statement, in their order.'
)


@contextmanager
def _open(context: RunContext) -> Iterator[Runner]:
    with _prepared(context) as asked, opened_caller(line_of(context, asked.model)) as caller:
        yield Asking(context, caller, asked.prepare, shares=asked.shares)


@contextmanager
def _prepared(context: ColumnContext) -> Iterator[Prepared]:
    config = context.column.config
    model = Model.of(config.get("engine") or {}, {})
    shared = shares(config, model.parameters)
    if "source" in config:
        yield Prepared(model, _Assertion(model, context.column).prepare, shares=shared)
        return
    texts = [Text(f"config.{key}", config[key], F_STRING) for key in ("system", "prompt") if key in config]
    wrapper, reading = format_of(config.get("response_format"), context)
    with opened_renderer(context.store, context.who, texts) as renderer:
        asked = _Prompt(model, renderer, reading, wrapper, _variables(context.column))
        yield Prepared(model, asked.prepare, shares=shared)


@contextmanager
def _keys(context: ColumnContext) -> Iterator[Keys]:
    with _prepared(context) as asked:
        yield asked.keys


def format_of(
    given: Mapping[str, Any] | None, context: ColumnContext
) -> tuple[Mapping[str, Any] | None, Reading]:
    """Return a response format in the wrapper of OpenAI, and how its answers are read.

    Raises:
        InvalidConfig: it holds no JSON schema.
    """
    match given:
        case None | {"type": "text"}:
            return None, Words()
        case {"type": "json_object"}:
            return given, Fitting(None, context)
        case {"type": "json_schema", "json_schema": {"schema": dict(schema), **rest}}:
            return {
                "type": "json_schema",
                "json_schema": {"name": "answer", **rest, "schema": schema},
            }, Fitting(schema, context)
        case {"type": "json_schema", "schema": dict(schema)}:
            return _wrapped(schema), Fitting(schema, context)
    return _wrapped(given), Fitting(given, context)


def _wrapped(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _variables(column: Column) -> dict[str, UUID]:
    return {
        str(edge["config_meta"]["variable_name"]): UUID(edge["column_id"])
        for edge in column.dependencies
        if "variable_name" in edge["config_meta"]
    }


def _arguments(model: Model, system: str, prompt: str) -> dict[str, Any]:
    said = [("system", system), ("user", prompt)]
    messages = [
        {"role": role, "content": [{"type": "text", "text": text}]}
        for role, text in said
        if text or role == "user"
    ]
    blueprint = {"type": CHAT, "messages": messages}
    found = find_llm_kwargs(
        blueprint, None, provider=model.provider, model=model.name, overrides=model.parameters
    )
    arguments = found or {}
    arguments.pop("stream", None)
    return arguments


@dataclass(frozen=True, slots=True)
class _Prompt:
    """Asks with a prompt that is filled from the row."""

    model: Model
    renderer: Renderer
    reading: Reading
    wrapper: Mapping[str, Any] | None
    variables: Mapping[str, UUID]

    def prepare(self, chunk: Chunk) -> Callable[[int], Item]:
        return Stretched(chunk, prompts_pace(), self._filled)

    def _filled(self, chunk: Chunk) -> tuple[Callable[[int], Item], int]:
        columns = {name: chunk.columns[one] for name, one in self.variables.items()}
        rendered = self.renderer.render(columns, len(chunk))
        read = {name: to_list(columns[name]) for name in self.renderer.variables if name in columns}

        def item_at(row: int) -> Item:
            if row in rendered.errors:
                return rendered.errors[row]
            *system, prompt = (str(texts[row]) for texts in rendered.texts)
            arguments: Mapping[str, Any] = _arguments(self.model, "".join(system), prompt)
            if self.wrapper is not None:
                arguments = with_schema(self.model.provider, arguments, self.wrapper)
            values = {name: held[row] for name, held in read.items()}
            use = PromptUse(variables=values, missing=rendered.missing_at(row))
            return Ask(self.model.provider, arguments, self.reading, use)

        return item_at, rendered.bytes


class _Assertion:
    """Asks whether statements about a column hold."""

    def __init__(self, model: Model, column: Column) -> None:
        self._model, self._config = model, column.config

    def prepare(self, chunk: Chunk) -> Callable[[int], Item]:
        config = self._config
        subjects = shown(chunk.columns[UUID(config["source"])]).fill_null("")
        if "prompt_source" in config:
            statements: Sequence[Any] = to_list(chunk.columns[UUID(config["prompt_source"])])
        else:
            statements = [config["prompt"]] * len(chunk)

        def item_at(row: int) -> Item:
            found = statements_of(statements[row])
            if found is None:
                return NO_STATEMENT
            several, texts = found
            return self._ask(str(subjects[row]), texts, several=several)

        return item_at

    def _ask(self, subject: str, statements: Sequence[str], *, several: bool) -> Ask:
        numbered = "\n".join(f"{at}. {text}" for at, text in enumerate(statements, 1))
        prompt = f"Text:\n{subject}\n\nStatements:\n{numbered}"
        system = "\n\n".join(filter(None, [self._config.get("system"), _JUDGE]))
        count = len(statements)
        schema = {
            "type": "object",
            "properties": {
                "verdicts": {
                    "type": "array",
                    "items": {"type": "boolean"},
                    "minItems": count,
                    "maxItems": count,
                }
            },
            "required": ["verdicts"],
            "additionalProperties": False,
        }
        arguments = with_schema(
            self._model.provider, _arguments(self._model, system, prompt), _wrapped(schema)
        )
        return Ask(self._model.provider, arguments, Verdicts(statements, several=several))


def statements_of(given: Any) -> tuple[bool, list[str]] | None:
    """Read a statement, or a JSON array of them; None where there is none. The first tells which it was."""
    value = given
    if isinstance(given, str) and given.lstrip().startswith("["):
        try:
            value = from_json(given)
        except ValueError:
            value = given
    if isinstance(value, list):
        return (True, value) if value and all(isinstance(one, str) and one for one in value) else None
    return (False, [value]) if isinstance(value, str) and value.strip() else None


KIND = RunnerKind(
    engine=lambda _: f"asks {REVISION}", open=_open, chunk_rows=CHUNK_ROWS, keeps=True, keys=_keys
)
