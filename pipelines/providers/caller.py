"""Calls of one model on an event loop of its own: let through, tried again, priced, logged.

Who asks works in another thread, hands in computations and takes what came of them from a queue.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvloop

from pipelines.providers.choice import Chosen
from pipelines.providers.gate import Gate
from pipelines.providers.protocol import PARTIAL, TIMEOUT, Provider, ProviderFailure, Reply, is_embedding
from pipelines.providers.retries import RetryPolicy
from storage.domain.calls.openai import read_embeddings
from storage.domain.calls.read import read_call
from storage.domain.calls.shapes import Call, mapping
from storage.domain.errors import PromptlakeError
from storage.domain.keys import Principal
from storage.domain.model_calls import Metrics, PromptUse, log_fields
from storage.domain.request_logs import to_us
from storage.prices import price_of
from storage.request_logs import LogDesk, log_request, opened_log_desk
from storage.store import Store

_log = logging.getLogger("promptlake.models")

_LOG_TRIES = 5
_CUT = frozenset({"length", "content_filter", "max_tokens", "refusal"})


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model said: its text, all of the call as it is logged, and what it took.

    `vectors` are those of embeddings, one a text.
    """

    text: str
    call: Call
    metrics: Metrics
    vectors: Sequence[Sequence[float]] = ()

    @property
    def tool_calls(self) -> list[Any]:
        messages = self.call.output.get("messages") or [{}]
        return list(messages[0].get("tool_calls") or [])


class CallFailed(Exception):
    """A call that was given up; `failure` is its last."""

    def __init__(self, failure: ProviderFailure, metrics: Metrics) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.metrics = metrics


@dataclass(frozen=True, slots=True)
class Line:
    """Which model is asked, for whom, and what its logs are marked with."""

    store: Store
    who: Principal
    chosen: Chosen
    model: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    policy: RetryPolicy = field(default_factory=RetryPolicy)


Computation = Callable[["Caller"], Awaitable[Any]]


class Caller:
    """Takes computations, each of which may call the model; made by `opened_caller`."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.done: queue.SimpleQueue[tuple[bytes, Any]] = queue.SimpleQueue()
        self.open_count = 0
        self._loop = uvloop.new_event_loop()
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="model-calls", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._provider: Provider
        self._gate: Gate
        self._desk: LogDesk

    def start(self, key: bytes, computation: Computation) -> None:
        """Begin a computation; its key and result, or the exception that ended it, come to `done`."""
        self.open_count += 1
        self._loop.call_soon_threadsafe(self._begin, key, computation)

    def take(self, most: int, first_within_s: float, rest_within_s: float) -> list[tuple[bytes, Any]]:
        """Return what has ended: nothing when the first takes too long."""
        found: list[tuple[bytes, Any]] = []
        until = time.monotonic() + first_within_s
        while len(found) < most and self.open_count:
            try:
                found.append(self.done.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                break
            self.open_count -= 1
            if len(found) == 1:
                until = time.monotonic() + rest_within_s
        return found

    async def call(self, arguments: Mapping[str, Any], prompt: PromptUse) -> Answered:
        """Call the model until it answers, and log the exchange.

        Raises:
            CallFailed: it was given up; the last failure is logged.
        """
        line, tried = self.line, 0
        failure: ProviderFailure | None = None
        while True:
            tried += 1
            begun_us = to_us(line.store.now())
            try:
                async with self._gate.passed():
                    begun_us = to_us(line.store.now())
                    reply = await self._sent(arguments)
                break
            except ProviderFailure as error:
                failure = error
            ended_us = to_us(line.store.now())
            if failure.after_s is not None:
                self._gate.pause.extend(min(failure.after_s, line.policy.patience_s))
            wait_s = line.policy.wait_s(failure, tried)
            if wait_s is None:
                raise await self._given_up(arguments, prompt, failure, (begun_us, ended_us))
            await asyncio.sleep(wait_s)
        return await self._answered(
            arguments, prompt, reply, failure if tried > 1 else None, (begun_us, to_us(line.store.now()))
        )

    async def _sent(self, arguments: Mapping[str, Any]) -> Reply:
        try:
            async with asyncio.timeout(self.line.store.settings.model_timeout_s):
                return await self._provider.send(arguments)
        except TimeoutError:
            raise ProviderFailure(TIMEOUT, "The provider did not answer in time", again=True) from None

    async def _answered(
        self,
        arguments: Mapping[str, Any],
        prompt: PromptUse,
        reply: Reply,
        before: ProviderFailure | None,
        times_us: tuple[int, int],
    ) -> Answered:
        name = self.line.chosen.name
        call = _read(reply.function_name, name, arguments, reply.body)
        price = price_of(name, call.model, call.usage, answered_by=call.answered_by)
        text = _text(call.output)
        problem: tuple[str | None, str] | None = None
        if _reason(reply.body) in _CUT:
            problem = PARTIAL, f"The answer ended early: {_reason(reply.body)}"
        elif before is not None:
            word = before.error_type if before.error_type.endswith("LIMIT") else None
            problem = word, f"Answered after a failure: {before.message}"
        fields = log_fields(
            call,
            provider=name,
            function_name=reply.function_name,
            price=price,
            times_us=times_us,
            metadata=self.line.metadata,
            prompt=prompt,
            warning=problem,
        )
        log_id = await self._log(fields)
        metrics = Metrics(
            1,
            () if log_id is None else (log_id,),
            (times_us[1] - times_us[0]) / 1000,
            price,
            call.usage.input,
            call.usage.output,
        )
        return Answered(text, call, metrics, reply.vectors)

    async def _given_up(
        self,
        arguments: Mapping[str, Any],
        prompt: PromptUse,
        failure: ProviderFailure,
        times_us: tuple[int, int],
    ) -> CallFailed:
        name = self.line.chosen.name
        function_name = f"{name}.{_called(arguments)}.create"
        fields = log_fields(
            _read(function_name, name, arguments, {}),
            provider=name,
            function_name=function_name,
            price=0.0,
            times_us=times_us,
            metadata=self.line.metadata,
            prompt=prompt,
            error=(failure.error_type, failure.message),
        )
        log_id = await self._log(fields)
        ids = () if log_id is None else (log_id,)
        return CallFailed(failure, Metrics(1, ids, (times_us[1] - times_us[0]) / 1000))

    async def _log(self, fields: dict[str, Any]) -> int | None:
        """Log a call; one that was paid is not lost because nobody writes logs."""
        for tried in range(_LOG_TRIES):
            try:
                return (await log_request(self._desk, self.line.who, fields=fields)).id
            except PromptlakeError as error:
                if error.code != "unavailable":
                    # the prompt was deleted meanwhile: the call is logged without it
                    fields = fields | {"prompt_id": None, "prompt_name": None, "prompt_version_number": None}
                await asyncio.sleep(0.2 * 2**tried)
        _log.warning("a call of a model could not be logged: nobody writes logs")
        return None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work beside computations, on the event loop: it is cancelled with them."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin(self, key: bytes, computation: Computation) -> None:
        self.spawn(self._compute(key, computation))

    async def _compute(self, key: bytes, computation: Computation) -> None:
        try:
            self.done.put((key, await computation(self)))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # raised again where it is taken from the queue
            self.done.put((key, error))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._stop = asyncio.Event()
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        settings = self.line.store.settings
        async with AsyncExitStack() as stack:
            self._desk = await stack.enter_async_context(opened_log_desk(self.line.store))
            self._gate = Gate(
                settings.root / "run" / "models",
                self.line.chosen.name,
                self.line.model,
                places=settings.model_calls,
                per_minute=settings.model_calls_per_minute,
            )
            stack.callback(self._gate.close)
            self._provider = self.line.chosen.open()
            stack.push_async_callback(self._provider.close)
            self._ready.set_result(None)
            await self._stop.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def begin(self) -> None:
        self._thread.start()
        self._ready.result()

    def end(self) -> None:
        """Cancel what is under way and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


@contextmanager
def opened_caller(line: Line) -> Iterator[Caller]:
    """Make calls in a block; what is under way at its end is cancelled."""
    caller = Caller(line)
    caller.begin()
    try:
        yield caller
    finally:
        caller.end()


def _called(arguments: Mapping[str, Any]) -> str:
    if is_embedding(arguments):
        return "embeddings"
    return "chat.completions" if "messages" in arguments else "completions"


def _read(function_name: str, provider: str, arguments: Mapping[str, Any], body: Any) -> Call:
    if is_embedding(arguments):
        return read_embeddings(arguments, body)
    return read_call(function_name, provider, arguments, body)


def _text(output: Mapping[str, Any]) -> str:
    if output["type"] == "chat":
        messages = output["messages"]
        blocks = messages[0]["content"] if messages else []
    else:
        blocks = output["content"]
    return "".join(block["text"] for block in blocks if block.get("type") == "text")


def _reason(body: Mapping[str, Any]) -> str:
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        return str(mapping(choices[0]).get("finish_reason") or "")
    return str(body.get("stop_reason") or "")
