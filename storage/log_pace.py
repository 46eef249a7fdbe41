"""How much waits in the tail, and whether logs pour in, so that their upkeep steps back."""

from storage.domain.log_pace import WINDOW_US, Arrived, logs_pour_in
from storage.domain.request_logs import to_us
from storage.engine.catalog import Connection
from storage.engine.rows.log_segments import is_lease_held, read_tail_state, select_arrived_since
from storage.settings import Settings
from storage.store import Store

FLUSH_LEASE = "flush"
"""Held while the tail is flushed; that of a flush which was killed runs out by itself."""
ASK_LEASE = "flush-ask"
"""Held by whoever asks for a flush before its sensor does."""


def much_bytes(settings: Settings) -> int:
    """So many bytes in the tail are flushed without waiting for a sensor."""
    return settings.flush_bytes * 3 // 8


def waiting_bytes(store: Store) -> int:
    """Bytes of the logs that wait for a flush."""
    with store.logs.read() as connection:
        return read_tail_state(connection).bytes


def needs_flush_now(store: Store) -> bool:
    """Tell whether much waits, and nobody is moving it."""
    with store.logs.read() as connection:
        much = read_tail_state(connection).bytes >= much_bytes(store.settings)
        return much and not is_lease_held(connection, FLUSH_LEASE, to_us(store.now()))


def is_pouring(store: Store, connection: Connection) -> bool:
    """Tell whether a burst is under way: many logs came lately, or more wait than a flush takes at once."""
    if read_tail_state(connection).bytes > store.settings.flush_bytes:
        return True
    now_us = to_us(store.now())
    arrived = select_arrived_since(connection, now_us - WINDOW_US)
    return logs_pour_in((Arrived(*times) for times in arrived), now_us)
