"""Starts a worker process: no environment, no descriptors but its frame pipes, no module but those named."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from storage.domain.errors import Unguarded
from storage.engine.sandbox.channel import Channel
from storage.engine.sandbox.kinds import Kind

_BOOT = (
    "import sys; sys.path[:0] = sys.argv[2:]; from storage.engine.sandbox.inside.worker import main; main()"
)
_ROOT = Path(__file__).parents[3]


def launch(kind: Kind) -> tuple[subprocess.Popen[bytes], Channel]:
    """Start a process that tries its walls, says hello, and then answers frames.

    Raises:
        Unguarded: a package that the kind requires is not installed.
        OSError: the system gives no process, or no descriptors.
    """
    paths = _import_paths(kind)
    theirs_in, to_worker = os.pipe()
    from_worker, theirs_out = os.pipe()
    try:
        process = _started(kind, theirs_in, theirs_out, paths)
    except OSError:
        os.close(to_worker)
        os.close(from_worker)
        raise
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return process, Channel(from_worker, to_worker, kind.max_frame_bytes)


def _started(kind: Kind, read_fd: int, write_fd: int, paths: list[str]) -> subprocess.Popen[bytes]:
    orders = {
        "module": kind.module,
        "frames": [read_fd, write_fd],
        "owner": os.getpid(),
        "memory_bytes": kind.memory_bytes,
        "cpu_s": kind.cpu_s,
        "max_frame_bytes": kind.max_frame_bytes,
    }
    # -I and -S: neither the environment, nor the user's folder, nor any .pth file has a say in what is run
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, json.dumps(orders), *paths]
    return subprocess.Popen(  # noqa: S603  our own interpreter, our own code
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(read_fd, write_fd),
        env={},
        cwd="/",
        start_new_session=True,  # a Ctrl-C of the terminal is for its owner
    )


def _import_paths(kind: Kind) -> list[str]:
    """Where a worker looks for modules: this package and what the kind requires."""
    found = [str(_ROOT), *kind.import_paths]
    for package in kind.requires:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise Unguarded(f"The package {package} is not installed")
        found.append(str(Path(spec.origin).parents[1 if spec.submodule_search_locations else 0]))
    return list(dict.fromkeys(found))
