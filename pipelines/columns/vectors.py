"""Texts embedded together: what is asked for at about one moment is one call, and each text goes once."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.providers.caller import Caller, CallFailed
from pipelines.providers.protocol import QUOTA_LIMIT, RATE_LIMIT
from storage.domain.model_calls import Metrics, PromptUse

# services that serve themselves take no more texts at once
MOST_TEXTS = 32
_MOST_BYTES = 128 << 10
_GATHER_S = 0.01
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's vector, and its share of the call that it came with."""

    vector: Sequence[float]
    share: Metrics


class Vectors:
    """The vectors of one column's run, on the caller's event loop; those used last are kept."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._waiting: dict[str, asyncio.Future[Embedded]] = {}
        self._next: list[str] = []
        self._next_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._known: OrderedDict[str, Embedded] = OrderedDict()
        self._known_bytes = 0

    async def embedded(self, caller: Caller, texts: Sequence[str]) -> list[Embedded]:
        """Return what each text is embedded as; one that others asked for costs nothing here.

        Raises:
            CallFailed: one of them could not be.
        """
        coming = [self._coming(caller, text) for text in texts]
        found = await asyncio.gather(*(future for future, _ in coming), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [
            one if is_first else replace(one, share=_free(one.share))
            for one, (_, is_first) in zip(found, coming, strict=True)
            if isinstance(one, Embedded)
        ]

    def _coming(self, caller: Caller, text: str) -> tuple[asyncio.Future[Embedded], bool]:
        """Return the vector to be, and whether it is asked for by this."""
        if text in self._waiting:
            return self._waiting[text], False
        future = asyncio.get_running_loop().create_future()
        if text in self._known:
            self._known.move_to_end(text)
            future.set_result(self._known[text])
            return future, False
        self._waiting[text] = future
        size = len(text.encode())
        if self._next_bytes + size > _MOST_BYTES:
            self._send_next(caller)
        self._next.append(text)
        self._next_bytes += size
        if len(self._next) >= MOST_TEXTS:
            self._send_next(caller)
        elif self._timer is None:
            self._timer = future.get_loop().call_later(_GATHER_S, self._send_next, caller)
        return future, True

    def _send_next(self, caller: Caller) -> None:
        texts, self._next, self._next_bytes = self._next, [], 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if texts:
            caller.spawn(self._send(caller, texts))

    async def _send(self, caller: Caller, texts: Sequence[str]) -> None:
        arguments: dict[str, Any] = {"model": self._model, "input": list(texts)}
        try:
            answered = await caller.call(arguments, PromptUse())
        except CallFailed as failed:
            if len(texts) > 1 and failed.failure.error_type not in {RATE_LIMIT, QUOTA_LIMIT}:
                # one of them may be what was refused: it fails alone
                await asyncio.gather(*(self._send(caller, [text]) for text in texts))
                return
            self._failed(texts, failed)
        except Exception as error:  # noqa: BLE001  # raised again by who waits for the vectors
            self._failed(texts, error)
        else:
            shares = _shares(answered.metrics, [len(text.encode()) for text in texts])
            for text, vector, share in zip(texts, answered.vectors, shares, strict=True):
                one = Embedded(array("d", vector), share)
                self._keep(text, one)
                self._waiting.pop(text).set_result(one)

    def _failed(self, texts: Iterable[str], error: Exception) -> None:
        for text in texts:
            self._waiting.pop(text).set_exception(error)

    def _keep(self, text: str, one: Embedded) -> None:
        self._known[text] = one
        self._known_bytes += _size(text, one)
        while self._known_bytes > _KEPT_BYTES:
            self._known_bytes -= _size(*self._known.popitem(last=False))


def _size(text: str, one: Embedded) -> int:
    return 4 * len(text) + 8 * len(one.vector)


def _free(share: Metrics) -> Metrics:
    """Return what a cell shows of a call that another one paid."""
    return Metrics(request_ids=share.request_ids)


def _shares(spent: Metrics, sizes: Sequence[int]) -> list[Metrics]:
    """Share what a call took among its texts, by their lengths; the tokens are told to the last one."""
    total = max(1, sum(sizes))
    shares, before, given = [], 0, 0
    for size in sizes:
        before += size
        tokens = spent.input_tokens * before // total
        share = replace(spent, price=spent.price * size / total, input_tokens=tokens - given)
        shares.append(share)
        given = tokens
    return shares


def spent_together(embedded: Iterable[Embedded]) -> Metrics:
    """Sum shares; those of one call are one call."""
    calls: dict[tuple[int, ...], Metrics] = {}
    for one in embedded:
        known = calls.get(one.share.request_ids)
        if known is None:
            calls[one.share.request_ids] = one.share
        else:
            calls[one.share.request_ids] = replace(
                known,
                request_count=max(known.request_count, one.share.request_count),
                latency_ms=max(known.latency_ms, one.share.latency_ms),
                price=known.price + one.share.price,
                input_tokens=known.input_tokens + one.share.input_tokens,
            )
    return sum(calls.values(), Metrics())
