"""A service that speaks OpenAI's (and Anthropic's) interface over HTTP, with faults on demand.

Marks in the last message script it, each for the first N calls with that text (without N: all):
`{429 N}` (Retry-After 0.3), `{500 N}`, `{401 N}`, `{400 N}`, `{quota N}`, `{echo N}` and `{echo500 N}` (401
and 500 that repeat the key), `{cut N}` (the connection ends mid-body), `{malformed N}`, `{hang N}` (no
answer), `{long N}` (ended by length), `{say TEXT}`, `{tool NAME}` (a call of that tool).
`python -m tests.model_server PORT [SECONDS]` serves until it is killed.
"""

import asyncio
import json
import re
import sys
import threading
import time
from collections import Counter
from typing import Any, ClassVar, Self

import httptools
import uvloop

_MARK = re.compile(r"\{(429|500|401|400|quota|echo500|echo|cut|malformed|hang|long|tool|say)(?: ([^}]*))?\}")
_ERRORS = {
    "429": (429, {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}, "Retry-After: 0.3\r\n"),
    "500": (500, {"error": {"message": "Broken"}}, ""),
    "401": (401, {"error": {"message": "Bad key"}}, ""),
    "400": (400, {"error": {"message": "Bad request"}}, ""),
    "quota": (429, {"error": {"message": "Pay first", "code": "insufficient_quota"}}, ""),
}


class ModelServer:
    """Serves from a thread; counts calls by text and how many were under way at once."""

    def __init__(self, *, delay_s: float = 0.0, port: int = 0) -> None:
        self.delay_s = delay_s
        self.calls: Counter[str] = Counter()
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.open = self.most_open = 0
        self.times: list[float] = []
        self._port = port
        self._loop = uvloop.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        for transport in list(_Connection.open):
            transport.abort()
        self._loop.close()

    def _run(self) -> None:
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self._port)
        )
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()

    def answer(self, path: str, body: Any) -> tuple[float, bytes | None, bool]:
        """Return how long to wait, what to send (None: nothing, ever), and whether the connection ends."""
        text = _text(body)
        self.calls[text] += 1
        self.bodies.append(body)
        self.paths.append(path)
        self.times.append(time.monotonic())
        say = None
        for mark, value in _MARK.findall(text):
            if mark == "say":
                say = value
            elif mark == "tool":
                called = {"id": "1", "type": "function", "function": {"name": value, "arguments": "{}"}}
                message = {"role": "assistant", "content": None, "tool_calls": [called]}
                answer = _said(path, body, "") | {"choices": [{"message": message}]}
                return self.delay_s, _response(200, answer), False
            elif not value or self.calls[text] <= int(value):
                return self._fault(mark, path, body, text)
        return self.delay_s, _response(200, _said(path, body, text if say is None else say)), False

    def _fault(self, mark: str, path: str, body: Any, text: str) -> tuple[float, bytes | None, bool]:
        if mark in _ERRORS:
            status, error, headers = _ERRORS[mark]
            return self.delay_s, _response(status, error, headers), False
        if mark.startswith("echo"):
            error = {"error": {"message": f"Bad key: {self.headers[-1].get('authorization')}"}}
            return self.delay_s, _response(500 if mark == "echo500" else 401, error), False
        if mark == "hang":
            return 0.0, None, False
        said = _said(path, body, text)
        if mark == "long":
            said["choices"][0]["finish_reason"] = "length"
            return self.delay_s, _response(200, said), False
        if mark == "malformed":
            return self.delay_s, _response(200, said, cut_to=40), False
        return self.delay_s, _response(200, said)[:-30], True


class _Connection(asyncio.Protocol):
    open: ClassVar[set[Any]] = set()

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.body, self.path, self.headers = b"", "", {}

    def on_url(self, url: bytes) -> None:
        self.path = url.decode()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.server.headers.append(self.headers)
        wait_s, said, ends = self.server.answer(self.path, json.loads(self.body))
        if said is None:
            return
        self.server.open += 1
        self.server.most_open = max(self.server.most_open, self.server.open)
        if wait_s:
            asyncio.get_running_loop().call_later(wait_s, self._send, said, ends)
        else:
            self._send(said, ends)

    def _send(self, said: bytes, ends: bool) -> None:
        self.server.open -= 1
        self.transport.write(said)
        if ends:
            self.transport.close()


def _text(body: Any) -> str:
    if "input" in body:
        return "\n".join(body["input"])
    if "prompt" in body:
        return str(body["prompt"])
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _letters(text: str) -> list[float]:
    return [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


def _said(path: str, body: Any, text: str) -> dict[str, Any]:
    if path.endswith("/embeddings"):
        # out of order, as a service may answer
        data = [{"index": at, "embedding": _letters(one)} for at, one in enumerate(body["input"])]
        return {
            "model": body["model"],
            "data": data[::-1],
            "usage": {"prompt_tokens": 10, "total_tokens": 10},
        }
    if path.endswith("/messages"):
        usage = {"input_tokens": 10, "output_tokens": 5}
        content = [{"type": "text", "text": text}]
        return {"model": body["model"], "content": content, "stop_reason": "end_turn", "usage": usage}
    choice = {"text": text} if "prompt" in body else {"message": {"role": "assistant", "content": text}}
    return {
        "id": "x",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _response(status: int, value: Any, headers: str = "", cut_to: int | None = None) -> bytes:
    body = json.dumps(value).encode()[:cut_to]
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    ModelServer(port=int(sys.argv[1]), delay_s=float((*sys.argv, "0")[2]))._run()
