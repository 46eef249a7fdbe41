"""Ctrl-C while DuckDB works for the operator."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import duckdb

T = TypeVar("T")


def interruptibly(connection: duckdb.DuckDBPyConnection, ask: Callable[[], T]) -> T:
    """Ask a connection in a thread, so that Ctrl-C ends what is under way.

    Asked in the main thread, DuckDB may not look up for minutes, and then waits for its own threads to
    come to their end.

    Raises:
        KeyboardInterrupt: Ctrl-C; a second one, where a join does not look up even so, ends the process.
    """
    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        try:
            return answer.result()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            connection.interrupt()
            answer.exception()
            signal.signal(signal.SIGINT, before)
            raise
