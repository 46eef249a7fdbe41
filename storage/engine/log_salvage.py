"""Reads from files of logs and scores what the manifest says of them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pyarrow.parquet as pq

from storage.domain.log_files import FOLDER, LogFile
from storage.domain.request_logs import to_us
from storage.engine.data_root import DataRoot, file_sha256
from storage.engine.log_segments import TOLD
from storage.engine.log_sql import duck, quoted
from storage.engine.rows.log_segments import LOGS, SCORES, ScoreRow, Segment

_KEY = re.compile(
    rf"{FOLDER}/(?P<workspace>\d+)/(?:[\d-]+/)?(?P<kind>{LOGS}|{SCORES})-\d+-\d+-(?P<id>[0-9a-f]{{32}})\.parquet"
)
_FAR = 1e12


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, whose it is, and what it says of itself."""

    id: UUID
    workspace_id: int
    kind: str
    file: LogFile


def find_files(data: DataRoot) -> Iterator[FoundFile]:
    """Yield the files of logs and scores below the data folder.

    Raises:
        ValueError: one is no Parquet file; the message names it.
    """
    for key in data.files(FOLDER, before_epoch_s=_FAR):
        named = _KEY.fullmatch(key)
        if named is None:
            continue
        kind = named["kind"]
        try:
            file = _told(data, key) or _read_ends(data, key, "id" if kind == LOGS else "change")
        except Exception as error:
            raise ValueError(f"{key} cannot be read: {error}") from error
        if file is not None:
            yield FoundFile(UUID(named["id"]), int(named["workspace"]), kind, file)


def _told(data: DataRoot, key: str) -> LogFile | None:
    metadata = pq.read_metadata(data.path(key)).metadata or {}
    told = metadata.get(TOLD.encode())
    return None if told is None else LogFile(key, **json.loads(told))


def _read_ends(data: DataRoot, key: str, number: str) -> LogFile | None:
    """What a file of an older release would say; None: it is empty."""
    path = data.path(key)
    with duck(threads=1) as connection:
        ends = f"SELECT min({number}), max({number}) FROM read_parquet(?)"  # noqa: S608
        first, last = connection.execute(ends, [str(path)]).fetchone() or (None, None)
    return None if first is None else LogFile(key, first, last, int(path.stat().st_mtime * 1e6))


def segment_of(data: DataRoot, found: FoundFile) -> Segment | None:
    """What the manifest should say of a file; None: it is empty."""
    path = data.path(found.file.key)
    number, recorded = ("id", "created_at") if found.kind == LOGS else ("change", "NULL")
    with duck(threads=1) as connection:
        query = (
            f"SELECT count(*), min({number}), max({number}), min({recorded}), max({recorded}) "  # noqa: S608
            "FROM read_parquet(?)"
        )
        rows, first, last, since, until = connection.execute(query, [str(path)]).fetchone() or (0,) * 5
    if not rows:
        return None
    size, digest = path.stat().st_size, file_sha256(path)
    from_us, to_us_ = (None if moment is None else to_us(moment) for moment in (since, until))
    return Segment(
        found.id, found.workspace_id, found.kind, found.file.key, first, last, rows, size, digest,
        found.file.made_us, from_us, to_us_,
    )  # fmt: skip


def read_scores(data: DataRoot, workspace_id: int, keys: list[str]) -> list[ScoreRow]:
    """The last change of each score of a workspace, from its files."""
    files = ", ".join(quoted(str(data.path(key))) for key in keys)
    query = (
        f"SELECT request_id, name, score, updated_at, change FROM read_parquet([{files}]) "  # noqa: S608
        "QUALIFY row_number() OVER (PARTITION BY request_id, name ORDER BY change DESC) = 1 ORDER BY change"
    )
    with duck() as connection:
        rows = connection.execute(query).fetchall()
    return [
        ScoreRow(workspace_id, request_id, name, score, to_us(updated_at), change)
        for request_id, name, score, updated_at, change in rows
    ]
