"""What searches read of the tail is of one moment, however little they read at once."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import duckdb
import pytest

from storage.engine import log_tails
from storage.engine.log_sql import duck
from storage.engine.rows.log_tail import TailRow
from storage.log_flush import flush_logs
from storage.store import Store
from tests.logs import add_logs

if TYPE_CHECKING:
    import pyarrow as pa

Seen = tuple[int, list[int]]


def read(tails: log_tails.Tails, connection: duckdb.DuckDBPyConnection, store: Store) -> Seen:
    """The last log in files, and the ids of the tail, as of one moment."""
    moment, tail = tails.read_moment(connection, store.logs, 1)
    return max((one.last_id for one in moment.segments), default=0), tail.columns["id"].to_pylist()


@pytest.mark.parametrize("flush_at", [1, 2, 4, 6])
def test_what_is_flushed_while_the_tail_is_read_is_read_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, flush_at: int
) -> None:
    monkeypatch.setattr(log_tails, "_READ_BYTES", 1)
    made, spread = log_tails._made, list[int]()

    def making(connection: duckdb.DuckDBPyConnection, piece: Sequence[TailRow]) -> "pa.Table":
        spread.extend(row.id for row in piece)
        if len(spread) == flush_at:
            flush_logs(store)
            add_logs(store, 2)
        return made(connection, piece)

    monkeypatch.setattr(log_tails, "_made", making)
    tails = log_tails.Tails()
    with duck() as connection:
        add_logs(store, 6)
        # the read with the last of them is the moment
        before = flush_at == 6
        assert read(tails, connection, store) == ((0, [1, 2, 3, 4, 5, 6]) if before else (6, [7, 8]))
        assert read(tails, connection, store) == (6, [7, 8])
        add_logs(store, 1)
        assert read(tails, connection, store) == (6, [7, 8, 9])
        flush_logs(store)
        assert read(tails, connection, store) == (9, [])
        assert read(tails, connection, store) == (9, [])
    assert len(spread) == len(set(spread)), "a log is spread once"
    assert max(spread) == 9


def test_no_read_is_open_while_logs_are_spread(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tails, "_READ_BYTES", 1)
    made, begun_anew = log_tails._made, list[int]()

    def making(connection: duckdb.DuckDBPyConnection, piece: Sequence[TailRow]) -> "pa.Table":
        with closing(sqlite3.connect(str(store.logs.sqlite_path), timeout=0)) as other:
            begun_anew.append(other.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0])
        return made(connection, piece)

    monkeypatch.setattr(log_tails, "_made", making)
    add_logs(store, 3)
    with duck() as connection:
        assert read(log_tails.Tails(), connection, store) == (0, [1, 2, 3])
    assert begun_anew == [0, 0, 0, 0]
