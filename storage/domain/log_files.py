"""Which files of logs a manifest names, told from the files alone: what a rewrite replaced is left out."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.domain.errors import PromptlakeError

FOLDER = "logs"
"""Where files of logs are, below the data root."""


class FilesOverlap(PromptlakeError):
    """Two files hold the same logs and neither was made from the other: it cannot be told which counts."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file as it says of itself: the ids that the files it was made from had (or its own), and when."""

    key: str
    first_id: int
    last_id: int
    made_us: int

    def replaces(self, other: "LogFile") -> bool:
        """Say whether all that another file held went into this one, or was written again."""
        wider = self.first_id <= other.first_id and other.last_id <= self.last_id
        same = (self.first_id, self.last_id) == (other.first_id, other.last_id)
        return wider and (not same or (self.made_us, self.key) > (other.made_us, other.key))


def plan_manifest(files: Sequence[LogFile]) -> list[LogFile]:
    """Choose from the files of one workspace and kind those that hold each log once, in the order of ids.

    Raises:
        FilesOverlap: it cannot be told.
    """
    kept: list[LogFile] = []
    # the widest first: what it replaces follows it
    for file in sorted(files, key=lambda one: (one.first_id, -one.last_id, -one.made_us, one.key)):
        before = kept[-1] if kept else None
        if before is None or file.first_id > before.last_id:
            kept.append(file)
        elif file.replaces(before):
            kept[-1] = file
        elif not before.replaces(file):
            raise FilesOverlap(f"{before.key} and {file.key} hold the same logs: move one of them away")
    return kept
