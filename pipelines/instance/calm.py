"""Runs one of Dagster's programs with less waste: `python -m pipelines.instance.calm dagster_webserver ...`.

Its UI and daemon each ask the code server every second whether it is still the same, over a connection that
they make anew each time: with both, half of what an idle service would use of a core.
"""

import gc
import runpy
import sys
from importlib import import_module
from typing import Any

from dagster._grpc import server_watcher

from pipelines.instance.known_queries import remember_queries
from pipelines.instance.record import keep_connections

_ASK_EVERY_S = 4
_UI = "dagster_webserver"


def _freeze_what_is_loaded() -> None:
    """Let no collection walk through what the UI has loaded when it begins to serve: 100 ms in a launch."""
    uvicorn = import_module("uvicorn")
    serve = uvicorn.run

    def frozen(*args: Any, **options: Any) -> None:
        gc.freeze()
        serve(*args, **options)

    vars(uvicorn)["run"] = frozen


def main() -> None:
    # a private name: should a release give it up, it must be heard of
    if not hasattr(server_watcher, "WATCH_INTERVAL"):
        raise RuntimeError("This release of Dagster watches its code server in another way")
    server_watcher.WATCH_INTERVAL = _ASK_EVERY_S
    keep_connections()
    del sys.argv[0]
    if sys.argv[0] == _UI:
        remember_queries(import_module("dagster_webserver.graphql"))
        _freeze_what_is_loaded()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
