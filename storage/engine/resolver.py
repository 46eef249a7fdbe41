"""Names to addresses, by the system's resolver, which blocks and cannot be interrupted: in threads."""

import socket
from concurrent.futures import Future, ThreadPoolExecutor

_POOL = ThreadPoolExecutor(max_workers=32, thread_name_prefix="dns")


def resolving(host: str, port: int) -> Future[tuple[str, ...]]:
    """Ask for the addresses of a name or an address in any spelling; empty when there is none."""
    return _POOL.submit(_addresses, host, port)


def _addresses(host: str, port: int) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:  # unknown, unreachable or malformed: nothing to connect to
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
