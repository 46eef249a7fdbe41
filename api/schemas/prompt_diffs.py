"""Wire shapes of what changed between two versions of a prompt."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from api.schemas.base import Answer, example
from storage.domain.prompt_diffs import (
    BlockChange,
    FieldChange,
    MessageChange,
    NameChanges,
    Op,
    PromptDiff,
    TextDiff,
)
from storage.domain.prompts import PromptVersion
from storage.domain.sequences import Tag

_SIDE = {
    "prompt_version_id": 2,
    "version_number": 2,
    "commit_message": "First",
    "created_at": "2026-01-05T09:30:00Z",
    "release_labels": ["prod"],
}
_TEXT = {
    "opcodes": [["replace", 0, 1, 0, 1]],
    "unified": "@@ -1 +1 @@\n-Answer {question}.\n+Answer {question} in {language}.",
}
_DIFF = {
    "success": True,
    "id": 1,
    "prompt_name": "support/answer",
    "from": _SIDE,
    "to": _SIDE
    | {"prompt_version_id": 3, "version_number": 3, "commit_message": "Languages", "release_labels": []},
    "identical": False,
    "messages": [
        {
            "op": "changed",
            "role": None,
            "from_index": 0,
            "to_index": 0,
            "from": None,
            "to": None,
            "blocks": [
                {
                    "op": "changed",
                    "from_index": 0,
                    "to_index": 0,
                    "from": None,
                    "to": None,
                    "text": _TEXT,
                    "fields": [],
                }
            ],
            "fields": [],
        }
    ],
    "settings": [],
    "metadata": [{"path": "model.name", "op": "changed", "from": "gpt-4o", "to": "gpt-4o-mini"}],
    "input_variables": {"added": ["language"], "removed": []},
    "release_labels": {"added": [], "removed": ["prod"]},
}


class Side(Answer):
    """One of the two versions."""

    prompt_version_id: int
    version_number: int
    commit_message: str | None
    created_at: datetime
    release_labels: list[str]

    @classmethod
    def of(cls, version: PromptVersion) -> Self:
        return cls(
            prompt_version_id=version.id,
            version_number=version.number,
            commit_message=version.commit_message,
            created_at=version.created_at,
            release_labels=list(version.release_labels),
        )


class FieldOut(Answer):
    """One value below a dotted path; what is not there is null."""

    path: str
    op: Op
    before: Any = Field(serialization_alias="from")
    after: Any = Field(serialization_alias="to")

    @classmethod
    def each(cls, changes: Iterable[FieldChange]) -> list[Self]:
        return [cls(path=c.path, op=c.op, before=c.before, after=c.after) for c in changes]


class TextOut(Answer):
    """Lines that differ: as hunks of a unified diff, and as [tag, from, to, from, to] counted from 0."""

    opcodes: list[tuple[Tag, int, int, int, int]]
    unified: str

    @classmethod
    def of(cls, diff: TextDiff) -> Self:
        codes = [(code.tag, code.a_from, code.a_to, code.b_from, code.b_to) for code in diff.opcodes]
        return cls(opcodes=codes, unified=diff.unified)


class BlockOut(Answer):
    """A content block: whole where it was added or removed, else what of it changed."""

    op: Op
    from_index: int | None
    to_index: int | None
    before: Any = Field(serialization_alias="from")
    after: Any = Field(serialization_alias="to")
    text: TextOut | None
    fields: list[FieldOut]

    @classmethod
    def of(cls, change: BlockChange) -> Self:
        return cls(
            op=change.op,
            from_index=change.from_index,
            to_index=change.to_index,
            before=change.before,
            after=change.after,
            text=None if change.text is None else TextOut.of(change.text),
            fields=FieldOut.each(change.fields),
        )


class MessageOut(Answer):
    """A message: whole where it was added or removed, else what of it changed; a completion is one."""

    op: Op
    role: str | None
    from_index: int | None
    to_index: int | None
    before: Any = Field(serialization_alias="from")
    after: Any = Field(serialization_alias="to")
    blocks: list[BlockOut]
    fields: list[FieldOut]

    @classmethod
    def of(cls, change: MessageChange) -> Self:
        return cls(
            op=change.op,
            role=change.role,
            from_index=change.from_index,
            to_index=change.to_index,
            before=change.before,
            after=change.after,
            blocks=[BlockOut.of(block) for block in change.blocks],
            fields=FieldOut.each(change.fields),
        )


class NamesOut(Answer):
    added: list[str]
    removed: list[str]

    @classmethod
    def of(cls, changes: NameChanges) -> Self:
        return cls(added=changes.added, removed=changes.removed)


class DiffAnswer(Answer):
    """What changed; lists hold nothing that is equal in both."""

    model_config = example(_DIFF)

    success: Literal[True] = True
    id: int
    prompt_name: str
    before: Side = Field(serialization_alias="from")
    after: Side = Field(serialization_alias="to")
    identical: bool = Field(description="Nothing but labels differs.")
    messages: list[MessageOut]
    settings: list[FieldOut] = Field(description="Type, format, tools and other keys of the blueprint.")
    metadata: list[FieldOut]
    input_variables: NamesOut
    release_labels: NamesOut

    @classmethod
    def of(cls, diff: PromptDiff) -> Self:
        return cls(
            id=diff.after.prompt.id,
            prompt_name=diff.after.prompt.name,
            before=Side.of(diff.before),
            after=Side.of(diff.after),
            identical=diff.identical,
            messages=[MessageOut.of(change) for change in diff.messages],
            settings=FieldOut.each(diff.settings),
            metadata=FieldOut.each(diff.metadata),
            input_variables=NamesOut.of(diff.input_variables),
            release_labels=NamesOut.of(diff.release_labels),
        )
