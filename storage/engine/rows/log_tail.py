"""Rows of the log tail: a group of logs with their scores and idempotency keys, written as one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice

import sqlalchemy as sa

from storage.domain.errors import Conflict
from storage.domain.request_logs import IDEMPOTENCY_HOURS, Score
from storage.engine.catalog import Connection, execute_bare
from storage.engine.log_schema import idempotency_keys, log_state, log_tail
from storage.engine.rows.scores import upsert_score

_IDEMPOTENCY_US = IDEMPOTENCY_HOURS * 3_600_000_000


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A client's name for what it sends, and the SHA-256 of what it then sent."""

    key: str
    request_hash: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One log on its way to the tail; `body` is its JSON."""

    workspace_id: int
    created_us: int
    body: bytes
    score: Score | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """What is written whole or not at all: logs of one workspace, whose ids follow one another."""

    entries: tuple[Entry, ...]
    idempotency: Idempotency | None = None

    @property
    def workspace_id(self) -> int:
        return self.entries[0].workspace_id

    @property
    def created_us(self) -> int:
        return self.entries[0].created_us

    @property
    def size(self) -> int:
        """Bytes of the bodies."""
        return sum(len(entry.body) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class TailRow:
    id: int
    workspace_id: int
    created_us: int
    body: bytes


Outcome = int | Conflict
"""The id of a submission's first log (as first written, when repeated), or why it was refused."""

# Logs that one statement inserts: each number of them is a statement of its own, compiled once.
_ROWS_A_STATEMENT = 256

_INSERT = log_tail.insert()
_TAKE_IDS = (
    log_state.update()
    .values(
        next_id=log_state.c.next_id + sa.bindparam("count"),
        appended_bytes=log_state.c.appended_bytes + sa.bindparam("size"),
    )
    .returning(log_state.c.next_id)
)
_FIRST_STATE = {
    "only": 1,
    "next_id": 1,
    "appended_bytes": 0,
    "flushed_bytes": 0,
    "flushed_through": 0,
    "score_change": 0,
    "scores_through": 0,
}


def append_group(connection: Connection, group: Sequence[Submission]) -> list[Outcome]:
    """Write a group; a submission whose idempotency key is known is answered from it and not written."""
    outcomes: list[Outcome | None] = [None] * len(group)
    repeats: dict[int, int] = {}
    if any(submission.idempotency for submission in group):
        repeats = _find_repeats(connection, group, outcomes)
    fresh = [i for i, outcome in enumerate(outcomes) if outcome is None and i not in repeats]
    if fresh:
        entries = [entry for i in fresh for entry in group[i].entries]
        next_id = _take_ids(connection, len(entries), sum(len(entry.body) for entry in entries))
        rows = [
            (id_, entry.workspace_id, entry.created_us, entry.body)
            for id_, entry in enumerate(entries, next_id)
        ]
        _insert_rows(connection, rows)
        for i in fresh:
            outcomes[i] = next_id
            _insert_companions(connection, group[i], next_id)
            next_id += len(group[i].entries)
    for i, original in repeats.items():
        outcomes[i] = outcomes[original]
    return [outcome for outcome in outcomes if outcome is not None]


@cache
def _insert_sql(dialect: sa.Dialect, rows: int) -> str:
    one = str(_INSERT.compile(dialect=dialect))
    head, values = one.split(" VALUES ")
    return f"{head} VALUES {', '.join([values] * rows)}"


def _insert_rows(connection: Connection, rows: list[tuple[int, int, int, bytes]]) -> None:
    if connection.dialect.positional:
        # One call of the driver for all of them: it lets go of the interpreter once, not once a row, and does
        # not queue for it again behind the thread that reads the next requests.
        left = iter(rows)
        while some := list(islice(left, _ROWS_A_STATEMENT)):
            sql = _insert_sql(connection.dialect, len(some))
            execute_bare(connection, sql, tuple(chain.from_iterable(some)))
    else:
        names = [column.name for column in log_tail.columns]
        connection.execute(_INSERT, [dict(zip(names, row, strict=True)) for row in rows])


def _take_ids(connection: Connection, count: int, size: int) -> int:
    next_id = _raise_next_id(connection, count, size)
    if next_id is None:
        connection.execute(log_state.insert().values(_FIRST_STATE))
        next_id = _raise_next_id(connection, count, size) or 0
    return next_id - count


def _raise_next_id(connection: Connection, count: int, size: int) -> int | None:
    given = {"count": count, "size": size}
    if not connection.dialect.positional:
        return connection.execute(_TAKE_IDS, given).scalar()
    sql, order = _take_ids_sql(connection.dialect)
    row = execute_bare(connection, sql, tuple(given[name] for name in order))
    return None if row is None else int(row[0])


@cache
def _take_ids_sql(dialect: sa.Dialect) -> tuple[str, tuple[str, ...]]:
    compiled = _TAKE_IDS.compile(dialect=dialect)
    return str(compiled), tuple(compiled.positiontup or ())


def _find_repeats(
    connection: Connection, group: Sequence[Submission], outcomes: list[Outcome | None]
) -> dict[int, int]:
    """Fill in the outcomes of keys used before; return which ones repeat an earlier one of the group."""
    seen: dict[tuple[int, str], int] = {}
    repeats: dict[int, int] = {}
    for i, submission in enumerate(group):
        given = submission.idempotency
        if given is None:
            continue
        first = seen.setdefault((submission.workspace_id, given.key), i)
        if first == i:
            outcomes[i] = _find_outcome(connection, submission, given)
        elif group[first].idempotency == given:
            # what the first one of the group gets, this one gets too
            repeats[i] = first
        else:
            outcomes[i] = _conflict(given.key)
    return repeats


def find_repeated(connection: Connection, workspace_id: int, given: Idempotency, now_us: int) -> int | None:
    """Return the id of the first log that a repeated request was given within the last 24 hours."""
    where = (idempotency_keys.c.workspace_id == workspace_id) & (idempotency_keys.c.key == given.key)
    found = connection.execute(sa.select(idempotency_keys).where(where)).first()
    if found is None or found.created_us <= now_us - _IDEMPOTENCY_US:
        return None
    return int(found.log_id) if found.request_hash == given.request_hash else None


def _find_outcome(connection: Connection, submission: Submission, given: Idempotency) -> Outcome | None:
    where = (idempotency_keys.c.workspace_id == submission.workspace_id) & (
        idempotency_keys.c.key == given.key
    )
    found = connection.execute(sa.select(idempotency_keys).where(where)).first()
    if found is None:
        return None
    if found.created_us <= submission.created_us - _IDEMPOTENCY_US:
        connection.execute(idempotency_keys.delete().where(where))
        return None
    return int(found.log_id) if found.request_hash == given.request_hash else _conflict(given.key)


def _conflict(key: str) -> Conflict:
    return Conflict(f"The idempotency key {key} was used for another request")


def _insert_companions(connection: Connection, submission: Submission, first_id: int) -> None:
    for log_id, entry in enumerate(submission.entries, first_id):
        if entry.score is not None:
            upsert_score(connection, entry.workspace_id, log_id, entry.score, entry.created_us)
    if submission.idempotency is not None:
        values = {
            "workspace_id": submission.workspace_id,
            "key": submission.idempotency.key,
            "request_hash": submission.idempotency.request_hash,
            "log_id": first_id,
            "created_us": submission.created_us,
        }
        connection.execute(idempotency_keys.insert().values(values))


def forget_idempotency_keys(connection: Connection, now_us: int) -> int:
    """Remove keys that no longer count; return how many."""
    where = idempotency_keys.c.created_us <= now_us - _IDEMPOTENCY_US
    return connection.execute(idempotency_keys.delete().where(where)).rowcount


_TAIL = sa.select(log_tail).where(
    log_tail.c.id > sa.func.coalesce(sa.select(log_state.c.flushed_through).scalar_subquery(), 0)
)


FETCHED_ROWS = 16
"""Rows that are fetched at once where not all are kept: each may have 10 MB."""


def select_tail(connection: Connection, workspace_id: int) -> list[TailRow]:
    """The unflushed logs of a workspace, by id."""
    query = _TAIL.where(log_tail.c.workspace_id == workspace_id).order_by(log_tail.c.id)
    return [TailRow(*row) for row in connection.execute(query)]


def select_tail_piece(
    connection: Connection, workspace_id: int, *, after: int, max_bytes: int
) -> tuple[list[TailRow], bool]:
    """The oldest unflushed logs of a workspace above an id: so many bytes of them, but one in any case.

    Returns them, by id, and whether that is all.
    """
    where = (log_tail.c.workspace_id == workspace_id) & (log_tail.c.id > after)
    query = _TAIL.where(where).order_by(log_tail.c.id)
    piece: list[TailRow] = []
    size = 0
    with connection.execution_options(yield_per=FETCHED_ROWS).execute(query) as rows:
        for row in rows:
            size += len(row.body)
            if piece and size > max_bytes:
                return piece, False
            piece.append(TailRow(*row))
    return piece, True


def find_tail_row(connection: Connection, workspace_id: int, log_id: int) -> TailRow | None:
    query = _TAIL.where((log_tail.c.workspace_id == workspace_id) & (log_tail.c.id == log_id))
    row = connection.execute(query).first()
    return None if row is None else TailRow(*row)


def iterate_tail(connection: Connection) -> Iterator[TailRow]:
    """All unflushed logs by id, a few at a time."""
    for row in connection.execution_options(yield_per=FETCHED_ROWS).execute(_TAIL.order_by(log_tail.c.id)):
        yield TailRow(*row)
