"""How much waits in the tail, and whether logs pour in, so that their upkeep steps back."""

from storage.domain.log_pace import WINDOW_US, Arrived, logs_pour_in
from storage.domain.request_logs import to_us
from storage.engine.catalog import Connection
from storage.engine.rows.log_segments import read_tail_state, select_arrived_since
from storage.settings import Settings
from storage.store import Store

ASK_LEASE = "flush-ask"
"""Held by whoever asks for a flush before its sensor does."""


def much_bytes(settings: Settings) -> int:
    """So many bytes in the tail are flushed without waiting for a sensor."""
    return settings.flush_bytes // 2


def waiting_bytes(store: Store) -> int:
    """Bytes of the logs that wait for a flush."""
    with store.logs.read() as connection:
        return read_tail_state(connection).bytes


def is_pouring(store: Store, connection: Connection) -> bool:
    """Tell whether a burst is under way: many logs came lately, or more wait than a flush takes at once."""
    if read_tail_state(connection).bytes > store.settings.flush_bytes:
        return True
    now_us = to_us(store.now())
    arrived = select_arrived_since(connection, now_us - WINDOW_US)
    return logs_pour_in((Arrived(*times) for times in arrived), now_us)
