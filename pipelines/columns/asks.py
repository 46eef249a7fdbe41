"""One computation by a model: what is asked, how its answer is read, and one attempt to mend an answer."""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from pydantic_core import from_json

from pipelines.providers.caller import Answered, Caller, CallFailed
from pipelines.providers.protocol import PARTIAL, is_embedding
from storage.domain.calls.shapes import Usage
from storage.domain.model_calls import Metrics, PromptUse
from storage.domain.results import CellError
from storage.prices import price_of

REVISION = 1
"""Raised when what is made of the same configuration and the same answers changes."""
_DEFAULT_OUTPUT_TOKENS = 4_096
_TOKENS_A_MESSAGE = 16
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", re.DOTALL)


class Misfit(Exception):
    """An answer that is not what was asked for; the message says why, for the model to read."""


class Unjudged(Exception):
    """Whether an answer is what was asked for cannot be told; `error` says why."""

    def __init__(self, error: CellError) -> None:
        super().__init__(error.message)
        self.error = error


class Reading(Protocol):
    """How an answer becomes a value; `spelled` tells it from others.

    `mends`: an answer that gives none is asked for once more. `slow`: it may take longer than an event loop
    can wait. `given_up`: why nothing more is to be asked.
    """

    @property
    def spelled(self) -> str: ...

    @property
    def mends(self) -> bool: ...

    @property
    def slow(self) -> bool: ...

    @property
    def given_up(self) -> CellError | None: ...

    def read(self, answered: Answered) -> Any:
        """Return the value.

        Raises:
            Misfit: the answer gives none.
            Unjudged: that cannot be told.
        """


@dataclass(frozen=True, slots=True)
class Words:
    """The text itself; with tool calls an object of both; with `parse` what it says where it is JSON."""

    parse: bool = False
    mends: bool = False
    slow: bool = False
    given_up: CellError | None = None

    @property
    def spelled(self) -> str:
        return f"words {self.parse}"

    def read(self, answered: Answered) -> Any:
        if answered.tool_calls:
            return {"content": answered.text, "tool_calls": answered.tool_calls}
        if self.parse:
            try:
                return json_of(answered.text)
            except Misfit:
                return answered.text
        return answered.text


class Verdicts:
    """One verdict on a statement, or one on each of several, by statement."""

    mends = True
    slow = False
    given_up: CellError | None = None

    def __init__(self, statements: Sequence[str], *, several: bool) -> None:
        self._statements, self._several = tuple(statements), several
        self.spelled = json.dumps(["verdicts", several])

    def read(self, answered: Answered) -> Any:
        value = json_of(answered.text)
        found = value.get("verdicts") if isinstance(value, dict) else None
        count = len(self._statements)
        if not isinstance(found, list) or len(found) != count or any(type(one) is not bool for one in found):
            raise Misfit(f'it must be {{"verdicts": [...]}} with {count} times true or false')
        return dict(zip(self._statements, found, strict=True)) if self._several else found[0]


@dataclass(frozen=True, slots=True)
class Ask:
    """What one cell asks a model."""

    provider: str
    arguments: Mapping[str, Any]
    reading: Reading
    prompt: PromptUse = field(default_factory=PromptUse)

    @property
    def key(self) -> bytes:
        """What equal computations share: who is asked what, and how the answer is read."""
        said = [REVISION, self.provider, self.arguments, self.reading.spelled]
        return sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).digest()

    @property
    def highest_price(self) -> float:
        """Price that it cannot exceed but by trying again: no token has less than a byte."""
        size = len(json.dumps(self.arguments, ensure_ascii=False).encode())
        messages = self.arguments.get("messages") or ()
        limits = (self.arguments.get(name) for name in ("max_completion_tokens", "max_tokens"))
        most = 0 if is_embedding(self.arguments) else _DEFAULT_OUTPUT_TOKENS
        output = next((limit for limit in limits if isinstance(limit, int)), most)
        choices = self.arguments.get("n")
        times = max(1, choices) if isinstance(choices, int) else 1
        usage = Usage(size + _TOKENS_A_MESSAGE * len(messages), output * times)
        return price_of(self.provider, str(self.arguments["model"]), usage) * (2 if self.reading.mends else 1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an ask: a value, or the error that stands for it."""

    value: Any
    metrics: Metrics
    error: CellError | None = None


async def compute(caller: Caller, ask: Ask) -> Outcome:
    """Ask; an answer that does not fit is shown to the model once, with the reason."""
    reading, spent = ask.reading, Metrics()
    if reading.given_up is not None:
        return Outcome(None, spent, reading.given_up)
    tries = 2 if reading.mends else 1
    arguments = ask.arguments
    try:
        for tried in range(1, tries + 1):
            answered = await caller.call(arguments, ask.prompt)
            spent += answered.metrics
            try:
                return Outcome(await _read(reading, answered), spent)
            except Misfit as misfit:
                problem = str(misfit)
                if tried < tries:
                    arguments = mended(arguments, answered.text, problem)
    except Unjudged as unjudged:
        return Outcome(None, spent, unjudged.error)
    except CallFailed as failed:
        error = CellError(failed.failure.error_type, failed.failure.message)
        return Outcome(None, spent + failed.metrics, error)
    also = ", also mended" if tries > 1 else ""
    return Outcome(None, spent, CellError(PARTIAL, f"The answer cannot be used{also}: {problem}"))


async def _read(reading: Reading, answered: Answered) -> Any:
    return await asyncio.to_thread(reading.read, answered) if reading.slow else reading.read(answered)


def mended(arguments: Mapping[str, Any], text: str, reason: str) -> dict[str, Any]:
    """Return the arguments that ask once more, after an answer that could not be used."""
    again = f"That answer cannot be used: {reason}. Answer again, with the corrected JSON value alone."
    if "messages" not in arguments:
        return {**arguments, "prompt": f"{arguments['prompt']}\n\n{text}\n\n{again}\n\n"}
    said = [{"role": "assistant", "content": text}] if text else []
    return {**arguments, "messages": [*arguments["messages"], *said, {"role": "user", "content": again}]}


def with_schema(provider: str, arguments: Mapping[str, Any], wrapper: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for JSON by a response format of OpenAI's; who knows none is told in words."""
    if provider != "anthropic":
        return {**arguments, "response_format": dict(wrapper)}
    schema = (wrapper.get("json_schema") or {}).get("schema")
    told = "Answer with one JSON value alone."
    if schema is not None:
        told = f"Answer with one JSON value alone, which fits this JSON schema: {json.dumps(schema)}"
    system = "\n\n".join(filter(None, [arguments.get("system"), told]))
    return {**arguments, "system": system}


def json_of(text: str) -> Any:
    """Read an answer that is to be JSON, also one in a fence.

    Raises:
        Misfit: it is none.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        return from_json(fenced[1] if fenced else text.strip(), allow_inf_nan=False)
    except ValueError:
        raise Misfit("it is no JSON value") from None
