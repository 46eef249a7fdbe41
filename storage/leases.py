"""Leases over the log database: who holds one may do a kind of work, everybody else lets it be."""

from collections.abc import Iterator
from contextlib import contextmanager

from storage.domain.errors import PromptlakeError
from storage.domain.request_logs import to_us
from storage.engine.catalog import Connection
from storage.engine.rows.log_segments import release_lease, take_lease
from storage.store import Store

LEASE_S = 60


class LeaseRefused(PromptlakeError):
    """Another process holds the lease, or took it over: do nothing."""


@contextmanager
def held_lease(store: Store, name: str) -> Iterator[str]:
    """Hold a lease for a block and yield its owner; one whose holder was killed runs out by itself.

    Raises:
        LeaseRefused: another holds it.
    """
    owner = str(store.new_id())
    with store.logs.transaction() as connection:
        renew_lease(connection, store, name, owner)
    try:
        yield owner
    finally:
        with store.logs.transaction() as connection:
            release_lease(connection, name, owner)


def renew_lease(connection: Connection, store: Store, name: str, owner: str) -> None:
    """Take or prolong a lease in a transaction of the work that it is held for.

    Raises:
        LeaseRefused: another holds it.
    """
    now_us = to_us(store.now())
    if not take_lease(connection, name, owner, now_us=now_us, until_us=now_us + LEASE_S * 1_000_000):
        raise LeaseRefused(f"Another process holds the lease `{name}`")
