"""Upkeep of the webhooks' outbox: what is overdue is armed again, what ended long ago is deleted."""

from dataclasses import dataclass

from storage.outbox import Outbox, count_outbox, count_overdue, prune_deliveries, rearm_overdue
from storage.store import Store


@dataclass(frozen=True, slots=True)
class Overdue:
    """What the delivering process should have done: `rearmed` just now, `waiting` since a minute or more."""

    rearmed: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Report:
    """The outbox after a clean-up that deleted `pruned` deliveries."""

    pruned: int
    outbox: Outbox


def arm_overdue(store: Store) -> Overdue:
    """Make due again what nothing else would, and count what waits though it is due."""
    return Overdue(rearmed=rearm_overdue(store), waiting=count_overdue(store))


def report(store: Store) -> Report:
    """Delete deliveries that ended long ago, and count the others."""
    return Report(pruned=prune_deliveries(store), outbox=count_outbox(store))
