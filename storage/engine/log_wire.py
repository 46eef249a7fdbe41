"""The bytes between those who take logs and the one who writes them: submissions one way, outcomes the other.

A submission is its number, its length, how many logs it has, its idempotency key if any, and the logs; an
outcome is that number and the id of its first log, or a refusal. Numbers are big endian.
"""

import struct
from collections.abc import Iterator

from pydantic_core import from_json, to_json

from storage.domain.errors import Conflict, PromptlakeError, Unavailable
from storage.domain.request_logs import Score
from storage.engine.rows.log_tail import Entry, Idempotency, Submission

Result = int | PromptlakeError
"""The id of a submission's first log, or why it was not written."""

# number, length of what follows, logs, length of the idempotency key's JSON
_SUBMISSION = struct.Struct(">QIHH")
# workspace, time in microseconds, length of the score's JSON, length of the body
_ENTRY = struct.Struct(">qqHI")
# number, id of the first log; below zero: the length of the refusal's JSON that follows
_OUTCOME = struct.Struct(">Qq")


def pack_submission(number: int, submission: Submission) -> list[bytes]:
    """Spell a submission as buffers to be sent one after the other."""
    idempotency = submission.idempotency
    key = b"" if idempotency is None else to_json([idempotency.key, idempotency.request_hash.hex()])
    parts = [b"", key] if key else [b""]
    length = len(key)
    for entry in submission.entries:
        score = b"" if entry.score is None else to_json([entry.score.name, entry.score.score])
        head = _ENTRY.pack(entry.workspace_id, entry.created_us, len(score), len(entry.body)) + score
        parts += (head, entry.body)
        length += len(head) + len(entry.body)
    parts[0] = _SUBMISSION.pack(number, length, len(submission.entries), len(key))
    return parts


def pack_outcome(number: int, result: Result) -> bytes:
    if isinstance(result, int):
        return _OUTCOME.pack(number, result)
    said = to_json({"code": result.code, "message": result.message})
    return _OUTCOME.pack(number, -len(said)) + said


class Submissions:
    """Reads submissions from a stream as it comes, in pieces of any size."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, piece: bytes | memoryview) -> Iterator[tuple[int, Submission]]:
        """Take the next piece; yield what is whole now, each with its number."""
        self._left += piece
        at = 0
        while len(self._left) - at >= _SUBMISSION.size:
            number, length, count, key_length = _SUBMISSION.unpack_from(self._left, at)
            begin = at + _SUBMISSION.size
            if len(self._left) - begin < length:
                break
            at = begin + length
            yield number, _submission(self._left, begin, count, key_length)
        del self._left[:at]


def _submission(buffer: bytearray, at: int, count: int, key_length: int) -> Submission:
    idempotency = None
    if key_length:
        key, request_hash = from_json(buffer[at : at + key_length])
        idempotency = Idempotency(key, bytes.fromhex(request_hash))
        at += key_length
    entries = []
    for _ in range(count):
        workspace_id, created_us, score_length, body_length = _ENTRY.unpack_from(buffer, at)
        at += _ENTRY.size
        score = Score(*from_json(buffer[at : at + score_length])) if score_length else None
        at += score_length
        entries.append(
            Entry(workspace_id, created_us, bytes(memoryview(buffer)[at : at + body_length]), score)
        )
        at += body_length
    return Submission(tuple(entries), idempotency)


class Outcomes:
    """Reads outcomes from a stream as it comes."""

    def __init__(self) -> None:
        self._left = b""

    def feed(self, piece: bytes) -> Iterator[tuple[int, Result]]:
        """Take the next piece; yield what is whole now, each with the number of its submission."""
        buffer, at = self._left + piece, 0
        while len(buffer) - at >= _OUTCOME.size:
            number, first_id = _OUTCOME.unpack_from(buffer, at)
            begin = at + _OUTCOME.size
            length = max(0, -first_id)
            if len(buffer) - begin < length:
                break
            at = begin + length
            yield number, first_id if first_id > 0 else _refusal(buffer[begin:at])
        self._left = buffer[at:]


def _refusal(said: bytes) -> PromptlakeError:
    refusal = from_json(said)
    if refusal["code"] == Conflict.code:
        return Conflict(refusal["message"])
    return Unavailable(refusal["message"], retry_after_s=1)
