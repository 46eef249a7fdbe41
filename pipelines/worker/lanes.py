"""Who is next: three lanes with limits of their own, and tenants that take turns within a lane."""

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass

# In this order: short work (imports, flushes, saves) must never stand behind long work.
COMPUTE = "compute"
LANES = ("short", COMPUTE, "wait")
LANE_TAG = "lane"
TENANT_TAG = "workspace_id"


@dataclass(frozen=True, slots=True)
class Job:
    """A run that waits for a process: which lane it takes and whose turn it is."""

    run_id: str
    lane: str
    tenant: str

    @classmethod
    def from_tags(cls, run_id: str, tags: Mapping[str, str]) -> "Job":
        """Read lane and tenant from a run's tags; a run without a lane computes."""
        return cls.of(run_id, tags.get(LANE_TAG, ""), tags.get(TENANT_TAG, ""))

    @classmethod
    def of(cls, run_id: str, lane: str, tenant: str) -> "Job":
        """Make a job; what names no lane computes."""
        return cls(run_id, lane if lane in LANES else COMPUTE, tenant)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many runs may work at once: by lane, and all together with places kept for the short lane."""

    short: int
    compute: int
    wait: int
    total: int
    reserved: int = 2

    @classmethod
    def of(cls, processes: int, cores: int) -> "Limits":
        """Share `processes` among the lanes: computing work never takes more than the cores."""
        total = max(processes, 3)
        return cls(short=max(2, 2 * cores), compute=cores, wait=total, total=total)


class Lanes:
    """Jobs that wait and jobs that run; decides who starts, starts nothing itself."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: dict[str, OrderedDict[str, deque[Job]]] = {lane: OrderedDict() for lane in LANES}
        self._running: dict[str, Job] = {}

    def knows(self, run_id: str) -> bool:
        """Tell whether a run waits or runs here."""
        return run_id in self._running or any(job.run_id == run_id for job in self.waiting())

    def waiting(self) -> list[Job]:
        return [job for lane in self._waiting.values() for turns in lane.values() for job in turns]

    def add(self, job: Job, *, first: bool = False) -> None:
        """Let a job wait behind (or before) the others of its tenant; one that is known stays."""
        if self.knows(job.run_id):
            return
        turns = self._waiting[job.lane].setdefault(job.tenant, deque())
        if first:
            turns.appendleft(job)
        else:
            turns.append(job)

    def drop(self, run_id: str) -> Job | None:
        """Forget a job, whether it waits or runs, and return it if it was known."""
        found = self._running.pop(run_id, None)
        for lane in self._waiting.values():
            for tenant, turns in list(lane.items()):
                found = next((job for job in turns if job.run_id == run_id), found)
                kept = deque(job for job in turns if job.run_id != run_id)
                if kept:
                    lane[tenant] = kept
                else:
                    del lane[tenant]
        return found

    def startable(self) -> int:
        """Count the waiting jobs that could start now, had they a process each."""
        room = self._room()
        free = {lane: min(room[lane], self._count_waiting(lane)) for lane in LANES}
        long_room = max(0, self._total_room() - self._kept_for_short())
        long = min(free["compute"] + free["wait"], long_room)
        return min(free["short"] + long, self._total_room())

    def take(self) -> Job | None:
        """Return the next job to run and count it as running; None when none may start."""
        for lane in LANES:
            if self._may_start(lane) and self._waiting[lane]:
                tenant, turns = next(iter(self._waiting[lane].items()))
                job = turns.popleft()
                del self._waiting[lane][tenant]
                if turns:
                    self._waiting[lane][tenant] = turns
                self._running[job.run_id] = job
                return job
        return None

    def _may_start(self, lane: str) -> bool:
        kept = 0 if lane == "short" else self._kept_for_short()
        return self._room()[lane] > 0 and self._total_room() > kept

    def _kept_for_short(self) -> int:
        return max(0, self.limits.reserved - self._count_running("short"))

    def _total_room(self) -> int:
        return max(0, self.limits.total - len(self._running))

    def _room(self) -> dict[str, int]:
        return {lane: max(0, getattr(self.limits, lane) - self._count_running(lane)) for lane in LANES}

    def _count_running(self, lane: str) -> int:
        return sum(job.lane == lane for job in self._running.values())

    def _count_waiting(self, lane: str) -> int:
        return sum(len(turns) for turns in self._waiting[lane].values())
