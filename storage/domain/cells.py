"""Cells: what a reader sees of one."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a text column, and as it is shown; `row_index` is its place now, `id` stays."""

    id: UUID
    column_id: UUID
    row_index: int
    value: Any
    display_value: str | None
    updated_at: datetime


def display_value(value: Any) -> str | None:
    """Return the string itself, else compact JSON; None for null."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def input_text(messages: Any) -> str | None:
    """Return chat messages as `[role]: text`, joined by a blank line; None for null."""
    if messages is None:
        return None
    return "\n\n".join(f"[{message.get('role')}]: {text_of(message.get('content'))}" for message in messages)


def text_of(blocks: Any) -> str:
    """Return the text blocks of a content, joined by a blank line."""
    texts = (block["text"] for block in blocks or () if block.get("type") == "text" and "text" in block)
    return "\n\n".join(texts)
