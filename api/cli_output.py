"""Files that commands write: whole under their names, or not at all."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(output: Path) -> Iterator[Path]:
    """Give the path to write; what was written takes its name once all of it is there.

    Until then, and after a failure or Ctrl-C, a file of that name stays as it was. Pipes and devices are
    written to as they are.

    Raises:
        OSError: the folder cannot be written.
    """
    if _is_stream(output):
        yield output
        return
    target = output.resolve()  # what a link names, not the link
    with tempfile.TemporaryDirectory(prefix=".promptlake-", dir=target.parent) as folder:
        part = Path(folder) / target.name
        yield part
        part.replace(target)


def _is_stream(output: Path) -> bool:
    return output.is_relative_to("/dev") or (output.exists() and not output.is_file())
