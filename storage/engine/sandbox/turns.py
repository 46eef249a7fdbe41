"""Who waits for a worker and who has one: decides whose turn it is. The pool's lock guards it."""

from collections.abc import Callable
from dataclasses import dataclass

from storage.engine.sandbox.kinds import Kind

# Work that lasts for longer is no burst of small requests; in seconds.
_SLOW_S = 0.25


@dataclass(eq=False, slots=True)
class Ticket:
    """One caller, from the moment that it asks until it gives its worker back."""

    kind: Kind
    tenant: int
    since: float = 0.0


class Turns:
    """First come, first served, within a share of workers for each tenant."""

    def __init__(self, share: int) -> None:
        self.share = share
        self._waiting: dict[Ticket, None] = {}  # who came first stands first
        self._served: set[Ticket] = set()

    def busy(self, tenant: int) -> int:
        """How many workers the tenant has at work."""
        return sum(ticket.tenant == tenant for ticket in self._served)

    def wait(self, ticket: Ticket) -> None:
        self._waiting[ticket] = None

    def serve(self, ticket: Ticket, now: float) -> None:
        ticket.since = now
        del self._waiting[ticket]
        self._served.add(ticket)

    def leave(self, ticket: Ticket) -> None:
        """The caller is done, or has given up."""
        self._waiting.pop(ticket, None)
        self._served.discard(ticket)

    def is_crowded(self, tenant: int, now: float) -> bool:
        """Whether a caller of the tenant would queue behind the tenant's own slow work.

        Each that waits holds a thread of the API: a tenant must not be able to take all of them.
        """
        waiting = sum(ticket.tenant == tenant for ticket in self._waiting)
        if waiting < 2 * self.share or self.busy(tenant) < self.share:
            return False
        return now - max(ticket.since for ticket in self._served if ticket.tenant == tenant) > _SLOW_S

    def may_go(self, ticket: Ticket, *, full: bool, has_idle: Callable[[Kind, int], bool]) -> bool:
        """Whether the tenant is below its share, and nobody is overtaken who waits for the same."""
        if self.busy(ticket.tenant) >= self.share:
            return False
        for other in self._waiting:
            if other is ticket:
                break
            if (full or other.tenant == ticket.tenant) and self._could_go(other, has_idle):
                return False
        return True

    def _could_go(self, ticket: Ticket, has_idle: Callable[[Kind, int], bool]) -> bool:
        busy = self.busy(ticket.tenant)
        return not busy or (busy < self.share and has_idle(ticket.kind, ticket.tenant))
