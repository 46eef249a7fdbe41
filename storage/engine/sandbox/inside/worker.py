"""A worker process: gives up everything, proves it, then answers frames until its owner is gone.

Started by path, with one argument: its orders as JSON. It knows no stdin and no stdout.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from storage.domain.walls import Wall, fallen
from storage.engine.sandbox.inside import confine, proof, seccomp
from storage.engine.sandbox.inside.frames import (
    FrameTooLarge,
    encode,
    frame_of,
    read_frame,
    read_request,
    write_frame,
)
from storage.engine.sandbox.inside.syscalls import find_machine

# An evaluator answers a request with a JSON value, or with the bytes of one, or raises a Refusal.
Evaluator = Callable[[Any], Any]


class Refusal(Exception):
    """The tenant's expression is at fault; carries what the owner is told."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__("refused")
        self.problem = problem


_NO_FILTER = Wall("system calls", False, "only Linux on x86_64 and aarch64 has a filter that is known here")


def run(orders: dict[str, Any]) -> None:
    """Serve as ordered; return when the owner closes its end."""
    read_fd, write_fd = orders["frames"]
    evaluate: Evaluator = importlib.import_module(orders["module"]).evaluator()
    walls = _confine(orders) if find_machine() else (_NO_FILTER,)
    hello = {"walls": [asdict(wall) for wall in walls]}
    write_frame(write_fd, encode(hello, orders["max_frame_bytes"]))
    if fallen(walls):
        return
    # the import of a module would fail from here on, and ctypes is of no use to anybody honest
    for name in [name for name in sys.modules if name.split(".")[0] in {"ctypes", "_ctypes"}]:
        del sys.modules[name]
    while (body := read_frame(read_fd, orders["max_frame_bytes"])) is not None:
        write_frame(write_fd, _answer(evaluate, body, orders["max_frame_bytes"]))


def _confine(orders: dict[str, Any]) -> tuple[Wall, ...]:
    surroundings = confine.forget_surroundings(tuple(orders["frames"]))
    user = confine.leave_root()
    owner = confine.die_with(orders["owner"])  # after the user: a change of user would undo it
    limits = confine.limit_resources(orders["memory_bytes"], orders["cpu_s"])
    try:
        filtered = Wall("system calls", True, seccomp.install())
    except seccomp.SeccompRefused as error:
        return (*surroundings, user, owner, limits, Wall("system calls", False, str(error)))
    return (*surroundings, user, owner, limits, filtered, *proof.prove())


def _answer(evaluate: Evaluator, body: bytes, max_bytes: int) -> bytes:
    try:
        return _framed(evaluate(read_request(body)), max_bytes)
    except Refusal as refusal:
        return encode({"problem": refusal.problem}, max_bytes)
    except Exception as error:  # noqa: BLE001  told by its kind alone: its text may hold the tenant's values
        limit = next((name for kind, name in _LIMITS.items() if isinstance(error, kind)), "evaluator")
        return encode({"limit": limit}, max_bytes)


def _framed(value: Any, max_bytes: int) -> bytes:
    if isinstance(value, bytes):
        return frame_of(b'{"value":%b}' % value, max_bytes)
    return encode({"value": value}, max_bytes)


_LIMITS: dict[type[Exception], str] = {
    FrameTooLarge: "output",
    MemoryError: "memory",
    RecursionError: "recursion",
}


def main() -> None:
    """Read the orders and serve."""
    run(json.loads(sys.argv[1]))
    os._exit(0)  # nothing to tidy: what exit handlers would do is refused


if __name__ == "__main__":
    main()
