"""Targets of webhooks, judged by what their names resolve to at that moment."""

from concurrent.futures import Future

from storage.domain.errors import invalid
from storage.domain.targets import Target, TargetRefused, check_addresses, parse_allowed, parse_target
from storage.engine.resolver import resolving
from storage.settings import Settings

_RESOLVE_WITHIN_S = 2.0


def check_url(settings: Settings, url: str) -> None:
    """Check the URL of a new webhook.

    A name that has no address yet, or whose resolver is slow, passes: every delivery checks again.

    Raises:
        Invalid: it is no http or https URL, or leads to a private address that is not allowed.
    """
    try:
        target = parse_target(url)
        addresses = _resolved(target)
        if addresses:
            judge(settings, target, addresses)
    except TargetRefused as refusal:
        raise invalid("url", refusal.message) from refusal


def _resolved(target: Target) -> tuple[str, ...]:
    try:
        return resolving(target.host, target.port).result(_RESOLVE_WITHIN_S)
    except TimeoutError:
        return ()


def look_up(target: Target) -> Future[tuple[str, ...]]:
    """Ask for the addresses of a target."""
    return resolving(target.host, target.port)


def judge(settings: Settings, target: Target, addresses: tuple[str, ...]) -> None:
    """Check the addresses that a target has now.

    Raises:
        TargetRefused: there is none, or one is private and not allowed.
    """
    check_addresses(target, addresses, parse_allowed(settings.webhook_allow))
