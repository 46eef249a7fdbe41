"""Prompt blueprints: what a published template holds (chat or completion), compiled, checked and rendered.

A blueprint is the JSON object of the wire: `{type: "completion", content: [block]}` or
`{type: "chat", messages: [{role, content: [block]}]}`, with `template_format` and `input_variables`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from storage.domain.errors import InvalidConfig, invalid
from storage.domain.templates import F_STRING, JINJA2, parse_template, render_template, variables_of

CHAT, COMPLETION = "chat", "completion"
MAX_BLUEPRINT_BYTES = 1_048_576

Blueprint = dict[str, Any]


def checked_blueprint(given: Mapping[str, Any]) -> Blueprint:
    """Return a blueprint as it is stored: defaults filled in, its input variables extracted.

    Raises:
        Invalid: it is over 1 MB as JSON.
        InvalidConfig: a text of it does not parse, or is a jinja2 template.
    """
    if len(json.dumps(given, ensure_ascii=False).encode()) > MAX_BLUEPRINT_BYTES:
        raise invalid("prompt_version.prompt_template", f"is over {MAX_BLUEPRINT_BYTES} bytes as JSON")
    kind = given.get("type") or (CHAT if "messages" in given else COMPLETION)
    stored = {**given, "type": kind, "template_format": given.get("template_format") or F_STRING}
    stored.setdefault("messages" if kind == CHAT else "content", [])
    return {**stored, "input_variables": list(input_variables(stored))}


def input_variables(blueprint: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that a blueprint reads, each once, in order of first sight.

    Raises:
        InvalidConfig: a text of it does not parse, or is a jinja2 template.
    """
    names: dict[str, None] = {}
    if blueprint.get("template_format") == JINJA2:
        raise _jinja2("prompt_template")
    for where, text, template_format in _texts(blueprint):
        if template_format == JINJA2:
            raise _jinja2(where)
        names |= dict.fromkeys(variables_of(parse_template(text, where)))
    return tuple(names)


def render_blueprint(blueprint: Mapping[str, Any], values: Mapping[str, Any]) -> Blueprint:
    """Return the blueprint with every text filled in; a missing variable renders as nothing.

    Raises:
        InvalidConfig: a text of it does not parse, or is a jinja2 template.
    """
    input_variables(blueprint)
    return _with_texts(blueprint, lambda text: render_template(parse_template(text), values))


def variable_warning(blueprint: Mapping[str, Any], values: Mapping[str, Any] | None) -> str | None:
    """Say which variables are missing or unused; None when all fit. Without values nothing was rendered."""
    needed = blueprint.get("input_variables", [])
    if values is None:
        if not needed:
            return None
        return f"Not rendered: no input_variables were given; the template reads {', '.join(needed)}"
    missing = [name for name in needed if values.get(name) is None]
    unused = [name for name in values if name not in needed]
    sentences = []
    if missing:
        sentences.append(f"Missing input variables were rendered empty: {', '.join(missing)}")
    if unused:
        sentences.append(f"Input variables that the template does not read: {', '.join(unused)}")
    return ". ".join(sentences) or None


def text_of_blocks(blocks: Any) -> str:
    """Join the text blocks of a content."""
    return "".join(block["text"] for block in blocks or [] if _is_text(block))


def _jinja2(where: str) -> InvalidConfig:
    return InvalidConfig(
        f"{where}: jinja2 templates cannot be published or rendered yet; use template_format f-string"
    )


def _texts(blueprint: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Walk the texts: (where, text, template format)."""
    whole = blueprint.get("template_format") or F_STRING
    if blueprint["type"] == COMPLETION:
        for place, text in _block_texts(blueprint.get("content")):
            yield f"prompt_template.content.{place}", text, whole
        return
    for index, message in enumerate(blueprint.get("messages") or []):
        own = message.get("template_format") or whole
        for place, text in _block_texts(message.get("content")):
            yield f"prompt_template.messages.{index}.content.{place}", text, own


def _block_texts(blocks: Any) -> Iterator[tuple[str, str]]:
    for index, block in enumerate(blocks or []):
        if _is_text(block):
            yield f"{index}.text", block["text"]


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _with_texts(blueprint: Mapping[str, Any], change: Callable[[str], str]) -> Blueprint:
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
