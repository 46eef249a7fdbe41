"""Which logs of a workspace are gone although files still hold them."""

from bisect import bisect_left
from dataclasses import dataclass

FOR_EVER = None
MOST_KEEP_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Gone:
    """Deleted logs: all up to an id, and single ones above it, in order."""

    through: int = 0
    ids: tuple[int, ...] = ()

    def has(self, log_id: int) -> bool:
        return self.touches(log_id, log_id)

    def touches(self, first_id: int, last_id: int) -> bool:
        """Say whether logs between two ids (included) may be gone."""
        place = bisect_left(self.ids, first_id)
        return first_id <= self.through or (place < len(self.ids) and self.ids[place] <= last_id)


NOTHING_GONE = Gone()


def check_keep_days(days: int | None) -> int | None:
    """Return for how many days logs are kept; None: for ever.

    Raises:
        ValueError: it is no number of days.
    """
    if days is not None and not 1 <= days <= MOST_KEEP_DAYS:
        raise ValueError(f"Logs are kept for 1 to {MOST_KEEP_DAYS} days, or for ever")
    return days
