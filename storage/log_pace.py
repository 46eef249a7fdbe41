"""How much waits in the tail, and whether logs pour in, so that their upkeep steps back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from storage.domain import log_pace
from storage.domain.log_pace import WINDOW_US, Arrived, logs_pour_in
from storage.domain.request_logs import to_us
from storage.engine.catalog import Connection
from storage.engine.rows.log_segments import is_lease_held, read_tail_state, select_arrived_since
from storage.leases import held_lease, renew_lease
from storage.settings import Settings
from storage.store import Store

FLUSH_LEASE = "flush"
"""Held while the tail is flushed; that of a flush which was killed runs out by itself."""
ASK_LEASE = "flush-ask"
"""Held by whoever asks for a flush before its sensor does."""
STAY_LEASE = "flush-stay"
"""Held by a run that flushes again and again: none need be asked for."""


def much_bytes(settings: Settings) -> int:
    """So many bytes in the tail are flushed without waiting for a sensor."""
    return log_pace.much_bytes(settings.flush_bytes)


def look_bytes(settings: Settings) -> int:
    """Whenever so many bytes came, `needs_flush_now` is worth a question."""
    return log_pace.look_bytes(settings.flush_bytes)


def waiting_bytes(store: Store) -> int:
    """Bytes of the logs that wait for a flush."""
    with store.logs.read() as connection:
        return read_tail_state(connection).bytes


def needs_flush_now(store: Store) -> bool:
    """Tell whether much waits, or soon will, and nobody is moving it or about to."""
    now_us = to_us(store.now())
    with store.logs.read() as connection:
        if any(is_lease_held(connection, name, now_us) for name in (FLUSH_LEASE, STAY_LEASE)):
            return False
    return is_filling(store)


def is_filling(store: Store) -> bool:
    """Tell whether much waits in the tail, or soon will."""
    with store.logs.read() as connection:
        tail = read_tail_state(connection)
    age_us = 0 if tail.oldest_us is None else to_us(store.now()) - tail.oldest_us
    return log_pace.needs_flush(tail.bytes, age_us, store.settings.flush_bytes)


@contextmanager
def staying(store: Store) -> Iterator[Callable[[], None]]:
    """Tell for a block that a run goes on flushing; calling what is yielded prolongs it.

    Raises:
        LeaseRefused: another run does.
    """
    with held_lease(store, STAY_LEASE) as owner:

        def stay_on() -> None:
            with store.logs.transaction() as connection:
                renew_lease(connection, store, STAY_LEASE, owner)

        yield stay_on


def steps_back(store: Store) -> int:
    """By how many steps of priority a flush that begins now lets others go first."""
    return log_pace.flush_steps_back(waiting_bytes(store), store.settings.flush_bytes)


def is_pouring(store: Store, connection: Connection) -> bool:
    """Tell whether a burst is under way: many logs came lately, or more wait than a flush takes at once."""
    if read_tail_state(connection).bytes > store.settings.flush_bytes:
        return True
    now_us = to_us(store.now())
    arrived = select_arrived_since(connection, now_us - WINDOW_US)
    return logs_pour_in((Arrived(*times) for times in arrived), now_us)
