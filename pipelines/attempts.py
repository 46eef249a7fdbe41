"""One attempt at a delivery: the target is resolved and judged, and the very address judged is called."""

import asyncio
import ssl

import httpx2

from storage.domain.targets import Target, TargetRefused, bracketed, parse_target
from storage.domain.webhooks import ATTEMPT_S, KEPT_BYTES, Attempted, Claimed, event_body, headers_of
from storage.settings import Settings
from storage.targets import judge, look_up

_CONNECT_S = 4.0
_MOST_ADDRESSES = 4
_USER_AGENT = "promptlake-webhooks/1"


def open_transport(max_connections: int) -> httpx2.AsyncHTTPTransport:
    """Open what attempts are made with: no proxy, no redirects, no cookies, a connection an attempt.

    Connections are not kept: they are known by address, and one address may serve names that must not mix.
    """
    limits = httpx2.Limits(max_connections=max_connections, max_keepalive_connections=0)
    # the environment names certificates (SSL_CERT_FILE), but no proxy: it would connect for us
    return httpx2.AsyncHTTPTransport(verify=httpx2.create_ssl_context(), limits=limits, trust_env=False)


async def attempt(transport: httpx2.AsyncHTTPTransport, settings: Settings, claimed: Claimed) -> Attempted:
    """Make one attempt, which takes at most ATTEMPT_S whatever the target does."""
    answer = _Answer()
    try:
        async with asyncio.timeout(ATTEMPT_S):
            await _post(transport, settings, claimed, answer)
    except TimeoutError:
        answer.error = f"no whole answer within {ATTEMPT_S:.0f} s"
    except TargetRefused as refusal:
        answer.error = refusal.message
    except (httpx2.TransportError, httpx2.InvalidURL, ssl.SSLError, OSError) as error:
        answer.error = f"{type(error).__name__}: {error}"
    return answer.attempted()


class _Answer:
    """What has come of an attempt so far; a status counts even when the rest of the answer does not come."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.kept = bytearray()
        self.retry_after_s = 0.0
        self.error: str | None = None

    def attempted(self) -> Attempted:
        return Attempted(self.status, bytes(self.kept), self.error, self.retry_after_s)


async def _post(
    transport: httpx2.AsyncHTTPTransport, settings: Settings, claimed: Claimed, answer: _Answer
) -> None:
    target = parse_target(claimed.url)
    # others may wait for the same answer
    addresses = await asyncio.shield(asyncio.wrap_future(look_up(target)))
    judge(settings, target, addresses)
    *others, last = addresses[:_MOST_ADDRESSES]
    for address in others:
        try:
            return await _post_to(transport, target, address, claimed, answer)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            continue  # nothing was sent: the name has another address
    return await _post_to(transport, target, last, claimed, answer)


async def _post_to(
    transport: httpx2.AsyncHTTPTransport, target: Target, address: str, claimed: Claimed, answer: _Answer
) -> None:
    body = event_body(claimed.event)
    request = httpx2.Request(
        "POST",
        f"{target.scheme}://{bracketed(address)}:{target.port}{target.path}",
        headers={
            "Host": target.authority,
            "User-Agent": _USER_AGENT,
            "Accept-Encoding": "identity",
            "Connection": "close",
            **headers_of(claimed, body),
        },
        content=body,
        # the certificate must be the name's, not the address's
        extensions={"sni_hostname": target.host, "timeout": {"connect": _CONNECT_S}},
    )
    response = await transport.handle_async_request(request)
    try:
        answer.status = response.status_code
        answer.retry_after_s = _seconds(response.headers.get("retry-after", ""))
        # as it comes: unpacking could make gigabytes of what was kilobytes
        async for chunk in response.aiter_raw(KEPT_BYTES):
            answer.kept += chunk[: KEPT_BYTES - len(answer.kept)]
            if len(answer.kept) >= KEPT_BYTES:
                break
    finally:
        await response.aclose()


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0.0  # noqa: PLR2004
