"""One API process: `python -m api.server --fd N` serves the listening socket that it inherits.

The supervisor opens the socket once, so that callers wait while a process is replaced instead of being
refused, and several processes can share it.
"""

import argparse
import gc
import logging.config
import os
import socket
from typing import Any

from storage.settings import Settings

# Clients keep connections for 60 s and more between calls.
KEEP_ALIVE_S = 75
# What is under way gets this long to end when the process is told to stop.
SHUTDOWN_S = 5


GC_THRESHOLDS = (50_000, 20, 20)


def log_config(level: str) -> dict[str, Any]:
    """Lines on standard error; the server's own access lines are off, ours carry the request id."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"level": "WARNING", "handlers": ["stderr"]},
        "loggers": {"promptlake": {"level": level}, "uvicorn": {"level": "WARNING"}},
    }


def serve(settings: Settings, fd: int) -> None:
    """Serve until told to stop."""
    # What is loaded stays: collections meanwhile find nothing and cost a tenth of the start. Afterwards none
    # walks through it again, which would hold up every caller for tens of milliseconds.
    gc.disable()
    import uvicorn  # noqa: PLC0415

    from api.app import create_app  # noqa: PLC0415
    from api.wire import JoiningProtocol  # noqa: PLC0415

    config = log_config(settings.log_level)
    logging.config.dictConfig(config)
    server = uvicorn.Config(
        create_app(settings),
        loop="uvloop",
        http=JoiningProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        server_header=False,
        # nothing here asks where a call came from
        proxy_headers=False,
        log_config=config,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    gc.freeze()
    gc.enable()
    # A page of 100,000 cells makes as many dicts and no cycle; looking for one every 700 took half its time.
    gc.set_threshold(*GC_THRESHOLDS)
    # Not uvicorn's own `fd`: it takes every inherited socket for a unix one, so that the event loop leaves
    # Nagle's algorithm on and each answer on a kept connection waits 40 ms for the client's delayed ACK.
    try:
        uvicorn.Server(server).run(sockets=[socket.socket(fileno=fd)])
    finally:
        # modules in C complain about what they find left at the end
        gc.unfreeze()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="number of the inherited listening socket")
    serve(Settings.from_env(os.environ), parser.parse_args().fd)


if __name__ == "__main__":
    main()
