"""What changed between two versions of a prompt: messages, blocks, texts, settings, variables, labels.

A completion is compared as one message without a role. Messages and blocks are matched whole where they are
equal, and in their order where several differ; a text is compared line by line.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from storage.domain.blueprints import CHAT
from storage.domain.prompts import PromptVersion
from storage.domain.sequences import Effort, Opcode, opcodes, unified

Op = Literal["added", "removed", "changed"]
_NOT_SETTINGS = frozenset({"messages", "content", "input_variables"})


@dataclass(frozen=True, slots=True)
class TextDiff:
    """Two texts by their lines: opcodes [tag, from, to, from, to], lines counted from 0; and unified."""

    opcodes: list[Opcode]
    unified: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One value below a dotted path; what was not there is None."""

    path: str
    op: Op
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One content block: whole where it is new or gone, else what of it changed."""

    op: Op
    from_index: int | None
    to_index: int | None
    before: Any = None
    after: Any = None
    text: TextDiff | None = None
    fields: list[FieldChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MessageChange:
    op: Op
    role: str | None
    from_index: int | None
    to_index: int | None
    before: Any = None
    after: Any = None
    blocks: list[BlockChange] = field(default_factory=list)
    fields: list[FieldChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NameChanges:
    added: list[str]
    removed: list[str]


@dataclass(frozen=True, slots=True)
class PromptDiff:
    before: PromptVersion
    after: PromptVersion
    messages: list[MessageChange]
    settings: list[FieldChange]
    metadata: list[FieldChange]
    input_variables: NameChanges
    release_labels: NameChanges

    @property
    def identical(self) -> bool:
        """Whether both would render and be sent alike; labels do not count."""
        return not (self.messages or self.settings or self.metadata)


def diff_versions(before: PromptVersion, after: PromptVersion) -> PromptDiff:
    """Compare two versions of a prompt as they were published."""
    old, new = before.blueprint, after.blueprint
    return PromptDiff(
        before=before,
        after=after,
        messages=_message_changes(_messages(old), _messages(new), Effort()),
        settings=list(_field_changes(_without(old, _NOT_SETTINGS), _without(new, _NOT_SETTINGS))),
        metadata=list(_field_changes(before.metadata or {}, after.metadata or {})),
        input_variables=_name_changes(old.get("input_variables", ()), new.get("input_variables", ())),
        release_labels=_name_changes(before.release_labels, after.release_labels),
    )


def _messages(blueprint: Mapping[str, Any]) -> list[dict[str, Any]]:
    if blueprint["type"] == CHAT:
        # the language of the whole is told among the settings, that of a message where it is another
        whole = {"template_format": blueprint.get("template_format")}
        return [
            {key: value for key, value in message.items() if (key, value) not in whole.items()}
            for message in blueprint.get("messages") or []
        ]
    return [{"content": blueprint.get("content") or []}]


def _message_changes(
    old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]], effort: Effort
) -> list[MessageChange]:
    changes = []
    for i, j in _pairs(old, new, effort):
        if i is None or j is None:
            message = old[i] if i is not None else new[j or 0]
            op: Op = "added" if i is None else "removed"
            before, after = (None, message) if i is None else (message, None)
            changes.append(MessageChange(op, message.get("role"), i, j, before, after))
            continue
        changes.append(
            MessageChange(
                "changed",
                new[j].get("role"),
                i,
                j,
                blocks=_block_changes(old[i].get("content") or [], new[j].get("content") or [], effort),
                fields=list(_field_changes(_without(old[i], {"content"}), _without(new[j], {"content"}))),
            )
        )
    return changes


def _block_changes(
    old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]], effort: Effort
) -> list[BlockChange]:
    changes = []
    for i, j in _pairs(old, new, effort):
        if i is None or j is None:
            before = None if i is None else old[i]
            after = None if j is None else new[j]
            changes.append(BlockChange("added" if i is None else "removed", i, j, before, after))
            continue
        texts = (old[i].get("text"), new[j].get("text"))
        text = None
        apart: frozenset[str] = frozenset()
        if isinstance(texts[0], str) and isinstance(texts[1], str):
            apart = frozenset({"text"})
            text = None if texts[0] == texts[1] else _text_diff(texts[0], texts[1], effort)
        fields = list(_field_changes(_without(old[i], apart), _without(new[j], apart)))
        changes.append(BlockChange("changed", i, j, text=text, fields=fields))
    return changes


def _text_diff(old: str, new: str, effort: Effort) -> TextDiff:
    a, b = old.split("\n"), new.split("\n")
    codes = opcodes(a, b, effort)
    return TextDiff(codes, unified(a, b, codes))


def _pairs(old: Sequence[Any], new: Sequence[Any], effort: Effort) -> Iterator[tuple[int | None, int | None]]:
    """Walk what differs: (index of the old one, of the new one); None on the side where there is none."""
    for code in opcodes([_spelled(item) for item in old], [_spelled(item) for item in new], effort):
        if code.tag == "equal":
            continue
        both = min(code.a_to - code.a_from, code.b_to - code.b_from)
        for offset in range(both):
            yield code.a_from + offset, code.b_from + offset
        for index in range(code.a_from + both, code.a_to):
            yield index, None
        for index in range(code.b_from + both, code.b_to):
            yield None, index


def _field_changes(old: Mapping[str, Any], new: Mapping[str, Any], above: str = "") -> Iterator[FieldChange]:
    """Compare objects key by key, lists as a whole."""
    for key in [*old, *(key for key in new if key not in old)]:
        path = f"{above}{key}"
        if key not in new:
            yield FieldChange(path, "removed", old[key], None)
        elif key not in old:
            yield FieldChange(path, "added", None, new[key])
        elif isinstance(old[key], dict) and isinstance(new[key], dict):
            yield from _field_changes(old[key], new[key], f"{path}.")
        elif _spelled(old[key]) != _spelled(new[key]):
            yield FieldChange(path, "changed", old[key], new[key])


def _name_changes(old: Sequence[str], new: Sequence[str]) -> NameChanges:
    before, after = frozenset(old), frozenset(new)
    return NameChanges([n for n in new if n not in before], [n for n in old if n not in after])


def _without(value: Mapping[str, Any], keys: frozenset[str] | set[str]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if key not in keys}


def _spelled(value: Any) -> str:
    # as JSON, where true is not 1 and the order of keys says nothing
    return json.dumps(value, sort_keys=True)
