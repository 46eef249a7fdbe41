"""What was asked and answered, as text: the words of messages without their machinery."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def messages_of(side: Mapping[str, Any]) -> Sequence[Message]:
    """Return the messages of an input or output; a completion is one message of its user."""
    if side["type"] == "chat":
        messages: Sequence[Message] = side["messages"]
        return messages
    return [{"role": "user", "content": side["content"]}]


def input_text(messages: Iterable[Message] | None) -> str | None:
    """Return messages as `[role]: text`, joined by a blank line; None for null."""
    if messages is None:
        return None
    return "\n\n".join(f"[{one.get('role')}]: {_text(one.get('content'))}" for one in messages)


def output_text(side: Mapping[str, Any]) -> str:
    """Return the text blocks of an answer, joined by a blank line."""
    return _text(block for message in messages_of(side) for block in _blocks(message))


def output_value(side: Mapping[str, Any]) -> Any:
    """Return an answer as its text when it is nothing but text, else its messages or content."""
    messages = messages_of(side)
    plain = all(
        not message.get("tool_calls") and all(block.get("type") == "text" for block in _blocks(message))
        for message in messages
    )
    if plain:
        return "\n\n".join(_text(_blocks(message)) for message in messages)
    return side["messages"] if side["type"] == "chat" else side["content"]


def _blocks(message: Message) -> Sequence[Mapping[str, Any]]:
    blocks: Sequence[Mapping[str, Any]] = message.get("content") or []
    return blocks


def _text(blocks: Iterable[Mapping[str, Any]] | None) -> str:
    texts = (block.get("text") for block in blocks or () if block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str))
