"""Request history as rows of a sheet: which logs, and what of each."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from storage.domain.columns import LONGEST_TITLE, MOST_COLUMNS
from storage.domain.encodings import Encoding, encoding_of
from storage.domain.errors import Invalid, Problem
from storage.domain.filters import Filter, Group, OneOf, Range, parse_filter_group
from storage.domain.request_logs import to_us
from storage.domain.tables import free_title
from storage.domain.transcripts import messages_of, output_value
from storage.domain.words import query_words

MOST_REQUESTS = 50_000
NO_MATCH = "No requests matched"
FIRST_TITLES = ("request_id", "input", "output")
LOG_FIELDS = frozenset(
    {
        "provider", "model", "request_start_time", "request_end_time", "parameters", "tags", "metadata",
        "prompt_name", "prompt_id", "prompt_version_number", "prompt_input_variables", "input_tokens",
        "output_tokens", "price", "function_name", "api_type", "status", "error_type", "error_message",
        "latency_ms", "input", "output",
    }
)  # fmt: skip
SCORE, PROMPT_LABEL = "score", "prompt_label"
_METADATA, _SCORE_OF = "metadata.", "score."


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which logs a client asks for; what is given is ANDed, nothing given means all.

    Times are of `request_start_time`, inclusive. `filter_group` is a group as JSON text. Without `sort_by`
    ids come in the order given, other logs newest first. `variables` and `fields` become columns.
    """

    ids: tuple[int, ...] | None = None
    filter_group: str | None = None
    q: str | None = None
    sort_by: str | None = None
    descending: bool = True
    cost_breakdown_key: str | None = None
    prompt_id: int | None = None
    prompt_version_id: int | None = None
    prompt_label_id: int | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    limit: int | None = None
    variables: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistorySpec:
    """A query whose version and label were looked up; `nothing`: they contradict each other."""

    ids: tuple[int, ...] | None
    prompt_id: int | None
    version_number: int | None
    start_time: datetime | None
    end_time: datetime | None
    limit: int | None
    variables: tuple[str, ...]
    fields: tuple[str, ...]
    nothing: bool
    filter_group: str | None = None
    q: str | None = None
    sort_by: str | None = None
    descending: bool = True
    # no column comes of it; it is kept with what was asked
    cost_breakdown_key: str | None = None

    @property
    def searches(self) -> bool:
        """Whether more than ids, a prompt and times is asked for."""
        return self.filter_group is not None or self.q is not None or self.sort_by is not None

    def group(self) -> Group:
        """All conditions but ids and words as one filter group."""
        asked: list[Filter | Group] = []
        if self.filter_group is not None:
            asked.append(parse_filter_group(json.loads(self.filter_group)))
        if self.prompt_id is not None:
            asked.append(Filter("prompt_id", OneOf((self.prompt_id,))))
        if self.version_number is not None:
            asked.append(Filter("prompt_version_number", OneOf((self.version_number,))))
        if self.start_time is not None or self.end_time is not None:
            low, high = (None if one is None else to_us(one) for one in (self.start_time, self.end_time))
            asked.append(Filter("request_start_time", Range(low, high)))
        return Group("AND", tuple(asked))

    def to_json(self) -> dict[str, Any]:
        times = {
            name: value and value.isoformat()
            for name, value in (("start_time", self.start_time), ("end_time", self.end_time))
        }
        return {**asdict(self), **times}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "HistorySpec":
        times = {
            name: value[name] and datetime.fromisoformat(value[name]) for name in ("start_time", "end_time")
        }
        lists = {name: tuple(value[name]) for name in ("variables", "fields")}
        ids = None if value["ids"] is None else tuple(value["ids"])
        return cls(**{**value, **times, **lists, "ids": ids})


@dataclass(frozen=True, slots=True)
class LoggedExchange:
    """A log, read back: its fields as JSON values, its scores by name, the labels that name its version."""

    fields: Mapping[str, Any]
    scores: Mapping[str, int]
    labels: Sequence[str]


def check_history(query: HistoryQuery, loc: tuple[str, ...] = ("body", "source")) -> None:
    """Raise Invalid when a field is unknown, a variable or field makes no title, or `q` is too long."""
    query_words(query.q, (*loc, "q"))
    problems = [
        Problem((*loc, "include_fields", str(at)), f"{field!r} is no field of a request", "enum")
        for at, field in enumerate(query.fields)
        if not _is_field(field)
    ]
    for name, titles in (("variables_to_parse", query.variables), ("include_fields", query.fields)):
        problems += [
            Problem((*loc, name, str(at)), f"must have 1 to {LONGEST_TITLE} characters", "string_length")
            for at, title in enumerate(titles)
            if not 1 <= len(title) <= LONGEST_TITLE
        ]
    if len(FIRST_TITLES) + len(query.variables) + len(query.fields) > MOST_COLUMNS:
        problems.append(Problem(loc, f"asks for more than {MOST_COLUMNS} columns", "too_long"))
    if problems:
        raise Invalid(*problems)


def _is_field(field: str) -> bool:
    if field.startswith((_METADATA, _SCORE_OF)):
        return field not in {_METADATA, _SCORE_OF}
    return field in LOG_FIELDS or field in {SCORE, PROMPT_LABEL}


@dataclass(frozen=True, slots=True)
class HistoryColumn:
    """A column of imported history; without an encoding it is chosen by the values."""

    title: str
    read: Callable[[LoggedExchange], Any]
    encoding: Encoding | None = None

    def encoding_of(self, values: Sequence[Any]) -> Encoding:
        return self.encoding or encoding_of(values)


def history_columns(spec: HistorySpec) -> list[HistoryColumn]:
    """Return the columns: request_id, input, output, one a variable, one a field; titles are distinct."""
    columns = [
        HistoryColumn("request_id", lambda log: log.fields["id"], "integer"),
        HistoryColumn("input", lambda log: messages_of(log.fields["input"]), "messages"),
        HistoryColumn("output", lambda log: output_value(log.fields["output"])),
    ]
    taken = set(FIRST_TITLES)
    readers = [(name, _variable(name)) for name in dict.fromkeys(spec.variables)]
    readers += [(name, _field(name)) for name in dict.fromkeys(spec.fields) if name not in FIRST_TITLES]
    for name, read in readers:
        title = free_title(name, 1, taken.__contains__)
        taken.add(title)
        columns.append(HistoryColumn(title, read))
    return columns


def _variable(name: str) -> Callable[[LoggedExchange], Any]:
    return lambda log: log.fields["prompt_input_variables"].get(name)


def _field(name: str) -> Callable[[LoggedExchange], Any]:
    if name.startswith(_METADATA):
        return lambda log: log.fields["metadata"].get(name.removeprefix(_METADATA))
    if name == SCORE or name.startswith(_SCORE_OF):
        of = "default" if name == SCORE else name.removeprefix(_SCORE_OF)
        return lambda log: log.scores.get(of)
    if name == PROMPT_LABEL:
        return lambda log: ", ".join(log.labels) or None
    return lambda log: log.fields[name]


def needs_scores(spec: HistorySpec) -> bool:
    return any(field == SCORE or field.startswith(_SCORE_OF) for field in spec.fields)


def needs_labels(spec: HistorySpec) -> bool:
    return PROMPT_LABEL in spec.fields


def history_message(spec: HistorySpec, imported: int, *, more: bool) -> str:
    """Say what was imported, what was skipped, and whether more matched."""
    said = f"{imported} requests imported"
    # of a limit that was reached it is not known how many more there are
    if spec.ids is not None and (spec.limit is None or imported < spec.limit):
        unmatched = len(set(spec.ids)) - imported
        if unmatched:
            said += f"; {unmatched} of the ids were skipped: unknown, or not matching"
    if more:
        which = "newest" if spec.sort_by is None else "first"
        said += f"; more matched, these are the {which} {MOST_REQUESTS}"
    return said
