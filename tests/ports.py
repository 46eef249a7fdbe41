"""Ports for a service under test: free ones, that no connection is given between the choice and the start."""

import random
import socket
from pathlib import Path

_FIRST = 10_000
_USUAL_EPHEMERAL = 32_768


def free_ports(count: int) -> int:
    """Return the first of `count` neighbouring ports of the loopback address that are free."""
    while True:
        first = random.randrange(_FIRST, _first_ephemeral() - count)
        if all(_is_free(first + offset) for offset in range(count)):
            return first


def _first_ephemeral() -> int:
    """Return where the ports begin that the system gives to connections, or where they usually do."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return _USUAL_EPHEMERAL
    return first if first > _FIRST + 1_000 else _USUAL_EPHEMERAL


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
