"""When the tail of the logs is flushed into segments, and views are published again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TailState:
    """What waits: bytes of logs, when the oldest log or score came (None: nothing), views behind segments."""

    bytes: int
    oldest_us: int | None
    views_behind: bool = False


@dataclass(frozen=True, slots=True)
class FlushPlan:
    """What is due, with a sentence that says why or why not."""

    flush: bool
    publish: bool
    reason: str

    @property
    def due(self) -> bool:
        return self.flush or self.publish


def plan_flush(
    tail: TailState, *, now_us: int, flush_bytes: int, flush_after_s: float, at_work: bool = False
) -> FlushPlan:
    """Decide whether the tail is large enough (bytes) or old enough (seconds) to be flushed.

    `at_work`: a flush holds the tail, or was killed less than a minute ago; another one would be refused.
    """
    if tail.oldest_us is None:
        reason = "Views are behind the segments" if tail.views_behind else "Nothing waits to be flushed"
        return FlushPlan(flush=False, publish=tail.views_behind, reason=reason)
    age_s = max(0.0, (now_us - tail.oldest_us) / 1e6)
    reason = f"{tail.bytes} bytes wait, the oldest since {age_s:.0f} s"
    if at_work:
        return FlushPlan(flush=False, publish=False, reason=f"{reason}; another flush holds the tail")
    due = tail.bytes >= flush_bytes or age_s >= flush_after_s
    return FlushPlan(flush=due, publish=due or tail.views_behind, reason=reason)
