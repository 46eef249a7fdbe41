"""Where a webhook may lead: the parts of its URL, and which addresses are nobody's business to reach.

An address is judged after DNS and again at every delivery; the connection goes to the very address judged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from storage.domain.errors import PromptlakeError

MAX_URL = 2048
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PRINTABLE = re.compile(r"[!-~]+")
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_MAX_HOST = 253

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class TargetRefused(PromptlakeError):
    """The URL leads nowhere, or to an address that webhooks may not reach."""

    code = "validation_error"


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a webhook's URL; `host` is a name in small letters or an address without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = bracketed(self.host)
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator lets webhooks reach beyond the public internet."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()


def parse_target(url: str) -> Target:
    """Take a URL apart.

    Raises:
        TargetRefused: it is no plain http or https URL; the message says why.
    """
    if len(url) > MAX_URL or not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise TargetRefused(f"must be an ASCII URL of at most {MAX_URL} characters, without spaces")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise TargetRefused(f"is no URL: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise TargetRefused("must start with http:// or https://")
    if "@" in parts.netloc or parts.fragment:
        raise TargetRefused("must carry no user, password or fragment")
    if not host or len(host) > _MAX_HOST or not (_is_address(host) or _HOST_NAME.fullmatch(host)):
        raise TargetRefused("names no host")
    if port == 0:
        raise TargetRefused("names no port")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], path)


def origin_of(url: str) -> str:
    """What attempts at a URL are counted by: its origin, or itself where it is no URL any more."""
    try:
        return parse_target(url).origin
    except TargetRefused:
        return url


def parse_allowed(text: str) -> Allowed:
    """Read the operator's list: networks, addresses and host names, separated by commas.

    Raises:
        ValueError: an entry is none of them.
    """
    networks: list[Network] = []
    hosts: set[str] = set()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        try:
            networks.append(ip_network(entry, strict=False))
        except ValueError:
            if "/" in entry or not _HOST_NAME.fullmatch(entry):
                raise ValueError(f"{entry!r} is no network, address or host name") from None
            hosts.add(entry.rstrip(".").lower())
    return Allowed(tuple(networks), frozenset(hosts))


def check_addresses(target: Target, addresses: Sequence[str], allowed: Allowed) -> None:
    """Check every address that a target's host has now.

    Raises:
        TargetRefused: there is none, or one of them is private and not allowed.
    """
    if not addresses:
        raise TargetRefused(f"the name {target.host} has no address")
    if target.host in allowed.hosts:
        return
    for address in addresses:
        if not _may_reach(address, allowed):
            raise TargetRefused(
                f"{target.host} leads to {address}, a private, local or reserved address; "
                "the operator may allow it by PROMPTLAKE_WEBHOOK_ALLOW"
            )


def bracketed(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def _is_address(host: str) -> bool:
    try:
        return getattr(ip_address(host), "scope_id", None) is None
    except ValueError:
        return False


def _may_reach(text: str, allowed: Allowed) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    inner = _embedded(address)
    if any(one in network for network in allowed.networks for one in (address, inner)):
        return True
    return _is_public(inner)


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for (mapped, or by NAT64), else the address itself."""
    if not isinstance(address, IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _UNICAST_6 and not any(address in network for network in _NOT_PUBLIC_6)


# The library's own `is_global` changed between patch releases and counts multicast, site-local and
# IPv4-compatible addresses as global; the registries of special-purpose addresses are spelled out instead.
_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; a cloud's metadata service lives there
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host agent, on a public address
        "169.254.0.0/16",  # link-local; metadata services live there
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_NOT_PUBLIC_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo, ORCHID and others
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",
    )
)
