"""Folders: how a path names one, how deep they go."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from storage.domain.errors import invalid

MAX_DEPTH = 50
_TOKEN = re.compile(r"\\([.\\])|(\.)|([^.\\]+|\\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Folder:
    id: int
    workspace_id: int
    parent_id: int | None
    name: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FolderChange:
    """What a folder is to become; a name of None stays, and only what `moves` goes below `parent_id`."""

    name: str | None = None
    moves: bool = False
    parent_id: int | None = None


def split_folder_path(path: str) -> tuple[str, ...]:
    r"""Split a path at its dots; `\.` is a dot within a name, and `\\` a backslash.

    Raises:
        Invalid: a name is empty.
    """
    names = [""]
    for escaped, dot, plain in _TOKEN.findall(path):
        if dot:
            names.append("")
        else:
            names[-1] += escaped or plain
    if not all(names):
        raise invalid("path", "a name between dots is empty")
    return tuple(names)


def join_folder_path(names: Iterable[str]) -> str:
    """Spell names as the path that `split_folder_path` reads."""
    return ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in names)
