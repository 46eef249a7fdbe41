"""What stands between an expression of a tenant and the machine, as the worker itself has tried it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wall:
    """One wall of the sandbox; where a needed one does not stand, nothing is evaluated."""

    name: str
    stands: bool
    detail: str
    needed: bool = True


def fallen(walls: tuple[Wall, ...]) -> tuple[Wall, ...]:
    """The needed walls that do not stand."""
    return tuple(wall for wall in walls if wall.needed and not wall.stands)
