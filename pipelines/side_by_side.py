"""Work in the order of a graph: what does not wait for each other is done side by side, by threads."""

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from threading import Event
from typing import Generic, TypeVar

Node = TypeVar("Node", bound=Hashable)
Result = TypeVar("Result")


class SideBySide(Generic[Node, Result]):
    """Works off the nodes of a graph without cycles.

    `behind` tells which nodes each waits for. At most `most` are under way, and of each lane (`lane_of`) as
    many as `limits` says. `work` is called by a thread; when one call fails, `stop` is set for the others,
    and what it raised is raised here when they have ended.
    """

    def __init__(
        self,
        behind: Mapping[Node, frozenset[Node]],
        lane_of: Callable[[Node], str],
        limits: Mapping[str, int],
        most: int,
    ) -> None:
        self._sorter = TopologicalSorter(behind)
        self._sorter.prepare()
        self._lane_of, self._limits, self._most = lane_of, limits, most
        self._ready: dict[str, deque[Node]] = {lane: deque() for lane in limits}
        self._under_way: dict[Future[Result], Node] = {}

    def run(self, work: Callable[[Node], Result], ended: Callable[[Result], bool], stop: Event) -> bool:
        """Do all work; `ended` hears each result in this thread, and where it says no, nothing more begins.

        Returns whether everything was done.
        """
        going = True
        with ThreadPoolExecutor(self._most, thread_name_prefix="column") as threads:
            try:
                while True:
                    for ready in self._sorter.get_ready():
                        self._ready[self._lane_of(ready)].append(ready)
                    while going and (node := self._next()) is not None:
                        self._under_way[threads.submit(work, node)] = node
                    if not self._under_way:
                        return going
                    for future in wait(self._under_way, return_when=FIRST_COMPLETED).done:
                        going = ended(future.result()) and going
                        self._sorter.done(self._under_way.pop(future))
            except BaseException:
                stop.set()
                raise

    def _next(self) -> Node | None:
        if len(self._under_way) >= self._most:
            return None
        busy = [self._lane_of(node) for node in self._under_way.values()]
        for lane, nodes in self._ready.items():
            if nodes and busy.count(lane) < self._limits[lane]:
                return nodes.popleft()
        return None
