"""Names to addresses, by the system's resolver, which blocks and cannot be interrupted: in threads."""

import socket
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from ipaddress import ip_address

Addresses = tuple[str, ...]

_POOL = ThreadPoolExecutor(max_workers=32, thread_name_prefix="dns")
_asked: dict[tuple[str, int], Future[Addresses]] = {}
_asked_lock = threading.Lock()


def resolving(host: str, port: int) -> Future[Addresses]:
    """Ask for the addresses of a name or an address in any spelling; empty when there is none.

    Who asks while the same question is being answered shares the answer, so that a slow name takes one
    thread however many wait for it: never cancel the future. Nothing is remembered beyond that.
    """
    if _is_plain_address(host):
        known: Future[Addresses] = Future()
        known.set_result((host,))
        return known
    question = (host, port)
    with _asked_lock:
        if question not in _asked:
            _asked[question] = _POOL.submit(_answer, question)
        return _asked[question]


def _answer(question: tuple[str, int]) -> Addresses:
    try:
        found = socket.getaddrinfo(*question, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # unknown, unreachable or malformed: nothing to connect to
        return ()
    finally:
        with _asked_lock:
            _asked.pop(question, None)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _is_plain_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
