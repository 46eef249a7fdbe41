"""The built-in provider: offline, free, and the same answer each time; for tours, tests and dry tables.

Its models say what they do: `echo` repeats the last message, `first-word` and `last-word` give one word of
it; `words` embeds: texts are as alike as the words that they share. Where a JSON schema is asked for, every
model makes a value that fits. Marks in a prompt script it: `[[stub:answer Paris]]`, `[[stub:slow 0.5]]`
(seconds), and failures: `[[stub:rate_limit]]`, `[[stub:quota]]`, `[[stub:auth]]`, `[[stub:bad_request]]`,
`[[stub:server_error]]`, `[[stub:timeout]]`, `[[stub:malformed]]`; with a number, as in
`[[stub:server_error 2]]`, only the first attempts fail.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from pipelines.providers.protocol import (
    AUTH_ERROR,
    ERROR,
    PARTIAL,
    QUOTA_LIMIT,
    RATE_LIMIT,
    TIMEOUT,
    ProviderFailure,
    Reply,
    is_embedding,
)

_MARK = re.compile(r"\[\[stub:(\w+)(?: ([^\]]*))?\]\]")
_FAILURES: Mapping[str, tuple[str, str, bool]] = {
    "rate_limit": (RATE_LIMIT, "The stub is asked too often", True),
    "quota": (QUOTA_LIMIT, "The stub's quota is used up", False),
    "auth": (AUTH_ERROR, "The stub does not know the key", False),
    "bad_request": (ERROR, "The stub refuses the request", False),
    "server_error": (ERROR, "The stub is broken", True),
    "timeout": (TIMEOUT, "The stub did not answer in time", True),
    "malformed": (PARTIAL, "The answer is no JSON: cut off or malformed", True),
}
_WAIT_S = 0.01
_DIMENSIONS = 256
_DEEPEST, _MOST_ITEMS, _MOST_VALUES = 6, 100, 10_000


def _first_word(text: str) -> str:
    return _word(text, 0)


def _last_word(text: str) -> str:
    return _word(text, -1)


def _word(text: str, at: int) -> str:
    words = re.findall(r"\w+", text)
    return str(words[at]) if words else ""


MODELS: Mapping[str, Callable[[str], str]] = {
    "echo": lambda text: text,
    "first-word": _first_word,
    "last-word": _last_word,
}


class Stub:
    """Answers as OpenAI would spell it."""

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()

    async def send(self, arguments: Mapping[str, Any]) -> Reply:
        model = str(arguments["model"])
        known = EMBEDDINGS if is_embedding(arguments) else MODELS
        if model not in known:
            raise ProviderFailure(ERROR, f"The stub has no model {model[:100]}; it has {', '.join(known)}")
        text = _asked(arguments)
        answer = None
        for mark, value in _MARK.findall(text):
            if mark == "slow":
                await asyncio.sleep(_seconds(value))
            elif mark == "answer":
                answer = value
            elif mark in _FAILURES:
                self._fail(mark, value, text)
        if is_embedding(arguments):
            return _embedded(model, arguments["input"])
        schema = _schema(arguments)
        if answer is None:
            answer = MODELS[model](_MARK.sub("", text).strip())
            if schema is not None:
                answer = _fitting(schema, answer)
        name = "stub.chat.completions.create" if "messages" in arguments else "stub.completions.create"
        return Reply(_spelled(arguments, text, answer), name)

    def _fail(self, mark: str, value: str, text: str) -> None:
        self._tried[text] += 1
        if value.isdigit() and self._tried[text] > int(value):
            return
        error_type, message, again = _FAILURES[mark]
        raise ProviderFailure(
            error_type, message, again=again, after_s=_WAIT_S if mark == "rate_limit" else None
        )

    async def close(self) -> None:
        """Nothing is open."""


def _words_vector(text: str) -> list[float]:
    """Count words by a hash of them: texts are as alike as the words that they share."""
    vector = [0.0] * _DIMENSIONS
    for word in re.findall(r"\w+", text.casefold()) or [text]:
        vector[crc32(word.encode()) % _DIMENSIONS] += 1.0
    return vector


EMBEDDINGS: Mapping[str, Callable[[str], list[float]]] = {"words": _words_vector}


def _embedded(model: str, texts: Sequence[str]) -> Reply:
    vectors = [EMBEDDINGS[model](text) for text in texts]
    tokens = sum(len(text.split()) for text in texts)
    body = {
        "model": model,
        "data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return Reply(body, "stub.embeddings.create", vectors)


def _asked(arguments: Mapping[str, Any]) -> str:
    if is_embedding(arguments):
        return "\n".join(arguments["input"])
    if "prompt" in arguments and "messages" not in arguments:
        return str(arguments["prompt"])
    content = (arguments.get("messages") or [{}])[-1].get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 1.0


def _fitting(schema: Any, text: str) -> str:
    try:
        return json.dumps(_made(schema, text, 0, iter(range(_MOST_VALUES))), ensure_ascii=False)
    except (TypeError, ValueError, LookupError, AttributeError):
        raise ProviderFailure(ERROR, "The stub does not understand the JSON schema") from None


def _schema(arguments: Mapping[str, Any]) -> Any:
    match arguments.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            return schema
        case {"type": "json_object"}:
            return {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "string"}}}
    return None


def _made(schema: Any, text: str, depth: int, ration: Iterator[int]) -> Any:
    """Make a value that fits the plain parts of a JSON schema: the first that is given, else the least.

    Raises:
        ValueError: it would hold more values than the ration allows.
    """
    if next(ration, None) is None:
        raise ValueError("too many values")
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return text
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return _made(schema[name][0], text, depth + 1, ration)
    kind = schema.get("type")
    make = _MADE.get(kind[0] if isinstance(kind, list) and kind else str(kind))
    return (
        text[: schema.get("maxLength", len(text))] if make is None else make(schema, text, depth + 1, ration)
    )


def _made_object(schema: Mapping[str, Any], text: str, depth: int, ration: Iterator[int]) -> Any:
    properties = schema.get("properties") or {}
    names = schema.get("required") or list(properties)
    return {name: _made(properties.get(name, {}), text, depth, ration) for name in names}


def _made_array(schema: Mapping[str, Any], text: str, depth: int, ration: Iterator[int]) -> Any:
    count = min(schema.get("minItems", 1), _MOST_ITEMS)
    return [_made(schema.get("items", {}), text, depth, ration) for _ in range(count)]


_MADE: Mapping[str, Callable[[Mapping[str, Any], str, int, Iterator[int]], Any]] = {
    "object": _made_object,
    "array": _made_array,
    "integer": lambda schema, *_: int(schema.get("minimum", 0)),
    "number": lambda schema, *_: schema.get("minimum", 0),
    "boolean": lambda *_: True,
    "null": lambda *_: None,
}


def _spelled(arguments: Mapping[str, Any], text: str, answer: str) -> dict[str, Any]:
    if "messages" in arguments:
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": answer}}
    else:
        choice = {"text": answer}
    return {
        "model": arguments["model"],
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": len(text.split()), "completion_tokens": len(answer.split())},
    }
