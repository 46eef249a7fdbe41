"""What is searched for among request logs, and in which order it is wanted."""

from dataclasses import dataclass
from hashlib import blake2b

from storage.domain.filters import EVERYTHING, Group, fields_of
from storage.engine.filter_sql import EVERY_LOG, Condition

SORTS = {
    "request_start_time": "request_start_time",
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cost": "price",
    "latency_ms": "latency_ms",
    "status": "status",
}
_TEXTS = frozenset({"input_text", "output_text"})


@dataclass(frozen=True, slots=True)
class Asked:
    """What is searched for.

    `of_group` is the group as a condition, of which dictionaries can tell.
    `also` is what is asked beside the group. `facets`, `scores`: facts of answers, scores are needed. Logs
    above the id `through` do not count.
    """

    of_group: Condition
    group: Group = EVERYTHING
    also: Condition = EVERY_LOG
    words: tuple[str, ...] = ()
    facets: bool = False
    scores: bool = False
    through: int | None = None

    @property
    def condition(self) -> Condition:
        """All but the words."""
        return self.of_group.also(self.also)

    @property
    def reads_texts(self) -> bool:
        return bool(self.words) or not _TEXTS.isdisjoint(fields_of(self.group))

    @property
    def is_everything(self) -> bool:
        return self.condition == EVERY_LOG and not self.words

    @property
    def fingerprint(self) -> str:
        said = f"{self.condition.sql}\n{self.condition.parameters!r}\n{self.words!r}"
        return blake2b(said.encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Sort:
    """An order by one of `SORTS`; None: by id. Among equals the newest come first."""

    by: str | None = None
    descending: bool = True

    @property
    def sql(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"id {direction}" if self.by is None else f"{SORTS[self.by]} {direction}, id DESC"
