"""prompt_template: a prompt of the registry, or one written in the column, filled from the row and asked."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from pipelines.columns.asking import CHUNK_ROWS, Asking, Item, Prepared
from pipelines.columns.asks import REVISION, Ask, Words, with_schema
from pipelines.columns.models import Model, line_of, shares
from pipelines.columns.pace import Stretched, prompts_pace
from pipelines.columns.protocol import ColumnContext, Keys, RunContext, Runner, RunnerKind
from pipelines.columns.templates import Rendered, Renderer, opened_renderer
from pipelines.columns.values import to_list
from pipelines.providers.caller import opened_caller
from storage.domain.blueprints import Blueprint, checked_blueprint, texts_of
from storage.domain.errors import InvalidConfig
from storage.domain.llm_kwargs import find_llm_kwargs
from storage.domain.model_calls import PromptUse
from storage.domain.prompts import PromptVersion
from storage.domain.results import CellError, Chunk, Values
from storage.sandbox import jinja2_of
from storage.snippets import expand_inline
from storage.templates import resolve_template


@dataclass(frozen=True, slots=True)
class Source:
    """The prompt of a column: its blueprint with snippets in place, and where it is from."""

    blueprint: Blueprint
    metadata: Mapping[str, Any]
    version: PromptVersion | None = None

    @property
    def pin(self) -> str:
        """Tell it from others: prompt and version, and a hash, for snippets have versions of their own."""
        spelled = json.dumps([self.blueprint, self.metadata], sort_keys=True, ensure_ascii=False)
        digest = sha256(spelled.encode()).hexdigest()[:32]
        if self.version is None:
            return digest
        return f"{self.version.prompt.id}:{self.version.number}:{digest}"

    @property
    def model(self) -> Mapping[str, Any]:
        """What the prompt says of its model."""
        return self.metadata.get("model") or {}


def _source(context: ColumnContext) -> Source:
    config = context.column.config
    if "inline_template" in config:
        given = config["inline_template"]
        stored = checked_blueprint(
            given["prompt_template"],
            jinja2_of(context.store, context.who),
            lambda blueprint: expand_inline(context.store, context.who, blueprint),
        )
        return Source(expand_inline(context.store, context.who, stored), given.get("metadata") or {})
    named = config["template"]
    number, label = named.get("version_number"), named.get("label")
    if context.pinned:
        # as the first attempt found it
        number, label = int(context.pinned.split(":")[1]), None
    version = resolve_template(
        context.store,
        context.who,
        name=named.get("name"),
        prompt_id=named.get("id"),
        number=number,
        label=label,
    )
    return Source(version.blueprint, version.metadata or {}, version)


def pin(context: ColumnContext) -> str:
    return _source(context).pin


@contextmanager
def opened_filling(context: ColumnContext) -> Iterator["Filling"]:
    """Fill a column's prompt in a block.

    Raises:
        NotFound, InvalidConfig: there is no such prompt, or it does not parse, or is another by now.
        Unguarded, Unavailable: as `opened_renderer`.
    """
    source = _source(context)
    if source.pin != context.pinned:
        raise InvalidConfig("The prompt changed while it was read: recalculate the column again")
    with opened_renderer(context.store, context.who, list(texts_of(source.blueprint))) as renderer:
        yield Filling(context, source, renderer)


@contextmanager
def _open(context: RunContext) -> Iterator[Runner]:
    with opened_filling(context) as filling:
        asked = filling.prepared()
        with opened_caller(line_of(context, asked.model)) as caller:
            yield Asking(context, caller, asked.prepare, shares=asked.shares)


@contextmanager
def _keys(context: ColumnContext) -> Iterator[Keys]:
    with opened_filling(context) as filling:
        yield filling.prepared().keys


@dataclass(frozen=True, slots=True)
class Filling:
    """Fills the prompt for the rows of a chunk."""

    context: ColumnContext
    source: Source
    renderer: Renderer

    def prepared(self) -> Prepared:
        """Tell what is asked of which model.

        Raises:
            InvalidConfig: neither the column nor its prompt names a model.
        """
        config = self.context.column.config
        model = Model.of(config.get("engine") or {}, self.source.model)
        parameters = {**(self.source.model.get("parameters") or {}), **model.parameters}
        return Prepared(model, self.asks(model), shares=shares(config, parameters))

    def asks(self, model: Model) -> Callable[[Chunk], Callable[[int], Item]]:
        """Make of each row what is asked."""
        read = self._reading(model)

        def asks(chunk: Chunk) -> tuple[Callable[[int], Item], int]:
            filled, size = self._filled(chunk)

            def item_at(row: int) -> Item:
                found = filled(row)
                if isinstance(found, CellError):
                    return found
                blueprint, prompt = found
                return Ask(model.provider, self._arguments(model, blueprint), read, prompt)

            return item_at, size

        return lambda chunk: Stretched(chunk, prompts_pace(), asks)

    def _reading(self, model: Model) -> Words:
        parameters = {**(self.source.model.get("parameters") or {}), **model.parameters}
        return Words(
            parse=(parameters.get("response_format") or {}).get("type") in {"json_schema", "json_object"}
        )

    def _arguments(self, model: Model, blueprint: Blueprint) -> Mapping[str, Any]:
        arguments = find_llm_kwargs(
            blueprint,
            self.source.metadata,
            provider=model.provider,
            model=model.name,
            overrides=model.parameters,
        )
        if arguments is None:
            raise InvalidConfig("config.engine: names no model")
        arguments.pop("stream", None)
        if model.provider == "anthropic" and (wrapper := arguments.pop("response_format", None)):
            return with_schema(model.provider, arguments, wrapper)
        return arguments

    def rendered(self, chunk: Chunk) -> Rendered | None:
        """Render the texts of a chunk; None where the prompt has no texts."""
        if not any(True for _ in texts_of(self.source.blueprint)):
            return None
        return self.renderer.render(self._columns(chunk), len(chunk))

    def _columns(self, chunk: Chunk) -> dict[str, Values]:
        mapping = self.context.column.config["prompt_template_variable_mappings"]
        return {variable: chunk.columns[UUID(one)] for variable, one in mapping.items()}

    def _filled(self, chunk: Chunk) -> tuple[Callable[[int], tuple[Blueprint, PromptUse] | CellError], int]:
        """Render a chunk; a row gives its blueprint and what is logged of it, or why it has none.

        The second is how many bytes the texts are.
        """
        blueprint, version = self.source.blueprint, self.source.version
        columns, rendered = self._columns(chunk), self.rendered(chunk)
        read = {name: to_list(columns[name]) for name in self.renderer.variables if name in columns}

        def filled(row: int) -> tuple[Blueprint, PromptUse] | CellError:
            if rendered is None:
                return blueprint, PromptUse()
            if row in rendered.errors:
                return rendered.errors[row]
            prompt = PromptUse(
                None if version is None else version.prompt.id,
                None if version is None else version.prompt.name,
                None if version is None else version.number,
                {name: values[row] for name, values in read.items()},
                rendered.missing_at(row),
            )
            return rendered.blueprint_at(row, blueprint), prompt

        return filled, 0 if rendered is None else rendered.bytes


KIND = RunnerKind(
    engine=lambda _: f"asks {REVISION}",
    open=_open,
    chunk_rows=CHUNK_ROWS,
    keeps=True,
    pin=pin,
    keys=_keys,
)
