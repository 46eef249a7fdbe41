"""Providers that are reached over HTTP, by their official clients: OpenAI and what speaks as it, Anthropic.

The clients sign, encode and pool connections. They are asked for the bare response: what an answer means is
decided here, and trying again is the business of one policy, not of each client.
"""

from collections.abc import Mapping
from typing import Any

import httpx2

from pipelines.providers.failures import failure_of, read_answer, read_vectors
from pipelines.providers.protocol import ERROR, PARTIAL, TIMEOUT, ProviderFailure, Reply, is_embedding

_CONNECT_WITHIN_S = 10.0
_OPENAI_URL = "https://api.openai.com/v1"
_ANTHROPIC_URL = "https://api.anthropic.com"


class OpenAI:
    """OpenAI, or a service that speaks its interface at another address."""

    def __init__(self, key: str, base_url: str, *, timeout_s: float, places: int) -> None:
        # half a second of loading, which only those who call pay
        from openai import AsyncOpenAI, DefaultAioHttpClient  # noqa: PLC0415

        timeout = httpx2.Timeout(timeout_s, connect=_CONNECT_WITHIN_S)
        self._client = AsyncOpenAI(
            api_key=key,
            base_url=base_url or _OPENAI_URL,
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAioHttpClient(limits=_limits(places), timeout=timeout),
        )

    async def send(self, arguments: Mapping[str, Any]) -> Reply:
        if is_embedding(arguments):
            body = await _posted(self._client, "/embeddings", arguments)
            return Reply(body, "openai.embeddings.create", read_vectors(body, len(arguments["input"])))
        chat = "messages" in arguments
        path = "/chat/completions" if chat else "/completions"
        given = {**arguments, "messages": _plain(arguments["messages"])} if chat else arguments
        body = await _posted(self._client, path, given)
        if not isinstance(body.get("choices"), list) or not body["choices"]:
            raise ProviderFailure(PARTIAL, "The answer has no choices", again=True)
        return Reply(body, f"openai.{path[1:].replace('/', '.')}.create")

    async def close(self) -> None:
        await self._client.close()


class Anthropic:
    """Anthropic's messages."""

    def __init__(self, key: str, base_url: str, *, timeout_s: float, places: int) -> None:
        # as above
        from anthropic import AsyncAnthropic, DefaultAioHttpClient  # noqa: PLC0415

        timeout = httpx2.Timeout(timeout_s, connect=_CONNECT_WITHIN_S)
        self._client = AsyncAnthropic(
            api_key=key,
            base_url=base_url or _ANTHROPIC_URL,
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAioHttpClient(limits=_limits(places), timeout=timeout),
        )

    async def send(self, arguments: Mapping[str, Any]) -> Reply:
        body = await _posted(self._client, "/v1/messages", arguments)
        if not isinstance(body.get("content"), list):
            raise ProviderFailure(PARTIAL, "The answer has no content", again=True)
        return Reply(body, "anthropic.messages.create")

    async def close(self) -> None:
        await self._client.close()


async def _posted(client: Any, path: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    given = {name: value for name, value in arguments.items() if name != "stream"}
    key = client.api_key.encode()
    try:
        response: httpx2.Response = await client.post(path, body=given, cast_to=httpx2.Response)
    # both clients are made by one generator: an error with a response, a timeout, or no connection
    except Exception as error:
        raise _failure(error, key) from error
    try:
        return read_answer(response.content)
    except ProviderFailure:
        return read_answer(_without(key, response.content))


def _without(key: bytes, said: bytes) -> bytes:
    """Some services repeat in an error what they were sent: nobody is to read the key in a cell."""
    return said.replace(key, b"***")


def _failure(error: Exception, key: bytes) -> ProviderFailure:
    answered = getattr(error, "response", None)
    if isinstance(answered, httpx2.Response):
        headers = {name.lower(): value for name, value in answered.headers.items()}
        return failure_of(answered.status_code, _without(key, answered.content), headers)
    name = type(error).__name__
    if "Timeout" in name or isinstance(error, TimeoutError | httpx2.TimeoutException):
        return ProviderFailure(TIMEOUT, "The provider did not answer in time", again=True)
    if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.DecodingError):
        return ProviderFailure(PARTIAL, "The answer was cut off", again=True)
    if isinstance(error, httpx2.HTTPError) or "Connection" in name:
        cause = error.__cause__
        if isinstance(cause, httpx2.RemoteProtocolError | httpx2.ReadError):
            return ProviderFailure(PARTIAL, "The answer was cut off", again=True)
        return ProviderFailure(ERROR, "The provider cannot be reached", again=True)
    raise error


def _limits(places: int) -> httpx2.Limits:
    return httpx2.Limits(max_connections=places, max_keepalive_connections=places)


def _plain(messages: Any) -> Any:
    """Content that is text alone goes as text: some compatible services know nothing else."""
    if not isinstance(messages, list):
        return messages
    return [_plain_message(message) for message in messages]


def _plain_message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    if all(part.get("type") == "text" and isinstance(part.get("text"), str) for part in content):
        return {**message, "content": "".join(part["text"] for part in content)}
    return message
