"""Prompt blueprints: what a published template holds (chat or completion), compiled, checked and rendered.

A blueprint is the JSON object of the wire: `{type: "completion", content: [block]}` or
`{type: "chat", messages: [{role, content: [block]}]}`, with `template_format` and `input_variables`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from storage.domain.errors import invalid
from storage.domain.templates import F_STRING, JINJA2, Filling, parse_template, variables_of

CHAT, COMPLETION = "chat", "completion"
MAX_BLUEPRINT_BYTES = 1_048_576
_MOST_TOLD = 50

Blueprint = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a blueprint, where it stands and in which language it is written."""

    where: str
    text: str
    template_format: str


class Jinja2(Protocol):
    """Evaluates jinja2 texts; it needs a process of its own, so the rules are handed one that does.

    Both raise InvalidConfig: a text does not parse, does not render, or meets a limit; and Unavailable.
    """

    def variables(self, texts: Sequence[Text]) -> list[tuple[str, ...]]:
        """The variables that each text reads, in order of first sight."""

    def render(self, texts: Sequence[Text], values: Mapping[str, Any]) -> list[str]:
        """Each text with its variables filled in."""


def checked_blueprint(
    given: Mapping[str, Any], jinja2: Jinja2, expand: Callable[[Blueprint], Blueprint] = lambda stored: stored
) -> Blueprint:
    """Return a blueprint as it is stored: defaults filled in, its input variables extracted.

    `expand` puts snippets in the place of references: what is checked and extracted is what will be rendered.

    Raises:
        Invalid: it is over 1 MB as JSON.
        InvalidConfig: a text of it does not parse.
    """
    check_size(given, "prompt_version.prompt_template")
    kind = given.get("type") or (CHAT if "messages" in given else COMPLETION)
    stored = {**given, "type": kind, "template_format": given.get("template_format") or F_STRING}
    stored.setdefault("messages" if kind == CHAT else "content", [])
    if kind == CHAT:
        # client libraries that fill in variables themselves read the language of each message
        stored["messages"] = [
            {**message, "template_format": message.get("template_format") or stored["template_format"]}
            for message in stored["messages"] or []
        ]
    return {**stored, "input_variables": list(input_variables(expand(stored), jinja2))}


def check_size(part: Any, where: str) -> None:
    """Check that a part of what is published fits.

    Raises:
        Invalid: it is over 1 MB as JSON.
    """
    if len(json.dumps(part, ensure_ascii=False).encode()) > MAX_BLUEPRINT_BYTES:
        raise invalid(where, f"is over {MAX_BLUEPRINT_BYTES} bytes as JSON")


def input_variables(blueprint: Mapping[str, Any], jinja2: Jinja2) -> tuple[str, ...]:
    """The names that a blueprint reads, each once, in order of first sight.

    Raises:
        InvalidConfig: a text of it does not parse.
    """
    names = _each(
        list(texts_of(blueprint)),
        lambda text: variables_of(parse_template(text.text, text.where)),
        jinja2.variables,
    )
    return tuple(dict.fromkeys(name for some in names for name in some))


def render_blueprint(blueprint: Mapping[str, Any], values: Mapping[str, Any], jinja2: Jinja2) -> Blueprint:
    """Return the blueprint with every text filled in; a missing variable renders as nothing.

    Raises:
        InvalidConfig: a text of it does not parse, does not render, or becomes too long.
    """
    filling = Filling(values)
    rendered = iter(
        _each(
            list(texts_of(blueprint)),
            lambda text: filling.render(parse_template(text.text, text.where), text.where),
            lambda texts: jinja2.render(texts, values),
        )
    )
    return with_texts(blueprint, lambda _: next(rendered))


def variable_warning(blueprint: Mapping[str, Any], values: Mapping[str, Any] | None) -> str | None:
    """Say which variables are missing or unused; None when all fit. Without values nothing was rendered."""
    needed = blueprint.get("input_variables", [])
    if values is None:
        if not needed:
            return None
        return f"Not rendered: no input_variables were given; the template reads {_told(needed)}"
    missing = [name for name in needed if values.get(name) is None]
    known = frozenset(needed)
    unused = [name for name in values if name not in known]
    sentences = []
    if missing:
        sentences.append(f"Missing input variables were rendered empty: {_told(missing)}")
    if unused:
        sentences.append(f"Input variables that the template does not read: {_told(unused)}")
    return ". ".join(sentences) or None


def _told(names: Sequence[str]) -> str:
    more = len(names) - _MOST_TOLD
    return ", ".join(names[:_MOST_TOLD]) + (f" and {more} more" if more > 0 else "")


def text_of_blocks(blocks: Any) -> str:
    """Join the text blocks of a content."""
    return "".join(block["text"] for block in blocks or [] if _is_text(block))


def _each(
    texts: Sequence[Text], f_string: Callable[[Text], T], jinja2: Callable[[Sequence[Text]], list[T]]
) -> list[T]:
    """Treat each text in its language, in order; all jinja2 texts go in one call."""
    theirs = [text for text in texts if text.template_format == JINJA2]
    answers = iter(jinja2(theirs) if theirs else ())
    return [next(answers) if text.template_format == JINJA2 else f_string(text) for text in texts]


def texts_of(blueprint: Mapping[str, Any]) -> Iterator[Text]:
    """Walk the texts in the order in which `with_texts` replaces them."""
    whole = blueprint.get("template_format") or F_STRING
    if blueprint["type"] == COMPLETION:
        for place, text in _block_texts(blueprint.get("content")):
            yield Text(f"prompt_template.content.{place}", text, whole)
        return
    for index, message in enumerate(blueprint.get("messages") or []):
        own = message.get("template_format") or whole
        for place, text in _block_texts(message.get("content")):
            yield Text(f"prompt_template.messages.{index}.content.{place}", text, own)


def _block_texts(blocks: Any) -> Iterator[tuple[str, str]]:
    for index, block in enumerate(blocks or []):
        if _is_text(block):
            yield f"{index}.text", block["text"]


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def with_texts(blueprint: Mapping[str, Any], change: Callable[[str], str]) -> Blueprint:
    """Return the blueprint with each text changed, in the order of `texts_of`."""
    if blueprint["type"] == COMPLETION:
        return {**blueprint, "content": _changed(blueprint.get("content"), change)}
    messages = [
        {**message, "content": _changed(message.get("content"), change)}
        for message in blueprint.get("messages") or []
    ]
    return {**blueprint, "messages": messages}


def _changed(blocks: Any, change: Callable[[str], str]) -> list[dict[str, Any]]:
    return [
        {**block, "text": change(cast("str", block["text"]))} if _is_text(block) else block
        for block in blocks or []
    ]
