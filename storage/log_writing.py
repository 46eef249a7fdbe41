"""The process that writes the log tail: `python -m storage.log_writing --fd N`, N a listening unix socket.

The API processes hand it their logs. It loads little and shares no lock with them; killed at any moment it
loses nothing that was answered.
"""

import argparse
import gc
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from storage.engine.catalog import Catalog
from storage.engine.log_writer import LogWriter
from storage.settings import Settings


@contextmanager
def writing_beside(logs: Catalog, *, flush_bytes: int) -> Iterator[socket.socket]:
    """Write the tail from a thread of this process, for a service of one process; yield the socket to it."""
    ours, theirs = socket.socketpair()
    writer = LogWriter(logs, None, [theirs], flush_bytes=flush_bytes)
    thread = threading.Thread(target=writer.run, name="log-writer", daemon=True)
    thread.start()
    try:
        yield ours
    finally:
        ours.close()
        writer.stop()
        thread.join()


def serve(settings: Settings, listener: socket.socket) -> None:
    """Write for all who connect until SIGTERM, then (for some seconds) until the last has gone."""
    listener.setblocking(False)
    with closing(Catalog(settings.log_database)) as logs:
        writer = LogWriter(logs, listener, flush_bytes=settings.flush_bytes)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: writer.stop())
        gc.freeze()
        writer.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="number of the inherited listening unix socket")
    settings = Settings.from_env(os.environ)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    with socket.socket(fileno=parser.parse_args().fd) as listener:
        serve(settings, listener)


if __name__ == "__main__":
    main()
