"""Request history imported into a sheet: what is asked is settled at once, the reading is a run's work."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from storage.domain.errors import NotFound
from storage.domain.history import (
    MOST_REQUESTS,
    NO_MATCH,
    HistoryColumn,
    HistoryQuery,
    HistorySpec,
    LoggedExchange,
    check_history,
    history_columns,
    history_message,
    needs_labels,
    needs_scores,
)
from storage.domain.imports import Imported, ImportRefused, ImportTarget, NewSheet, Started
from storage.domain.keys import Principal
from storage.domain.operations import IMPORT_REQUEST_LOGS, Operation
from storage.domain.prompts import PromptLink
from storage.domain.request_logs import LogFilter, iso_us, to_us
from storage.domain.words import query_words
from storage.engine.rows.prompt_labels import select_labels
from storage.engine.rows.scores import select_scores_of_many
from storage.imports import find_started, start_import
from storage.prompt_links import find_prompt_link, get_labelled_link, get_version_link
from storage.request_logs import scan_request_logs
from storage.request_search import SearchQuery, find_request_ids
from storage.store import Store

if TYPE_CHECKING:
    from storage.engine.segment_sink import SegmentSink

_BATCH_ROWS = 1_000
_JSON = ("parameters", "prompt_input_variables", "input", "output")

Report = Callable[[float, int], None]
"""Called with the share done (0 to 1) and the rows read after each batch; may raise to stop."""


def start_history_import(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    target: NewSheet | UUID,
    query: HistoryQuery,
    operation_id: str | None,
    request_hash: str,
    loc: tuple[str, ...] = ("body", "source"),
) -> Started:
    """Queue the import of logged requests into a sheet (E8, E13); a label means the version it names now.

    `loc` is where the query stands in the call.

    Raises:
        NotFound: no such table, sheet, prompt, version or label.
        Invalid: a field is unknown, or a title does not fit.
        ImportInProgress, Conflict: as `storage.imports.start_file_import`.
    """
    check_history(query, loc)
    asked: dict[str, Any] = {
        "kind": IMPORT_REQUEST_LOGS,
        "table_id": table_id,
        "target": target,
        "operation_id": operation_id,
        "request_hash": request_hash,
    }
    try:
        spec = settle_history(store, who.workspace_id, query)
    except NotFound:  # what it named the first time may have been deleted since
        found = find_started(store, who, **asked)
        if found is None:
            raise
        return found
    return start_import(store, who, **asked, spec={"history": spec.to_json()})


def settle_history(store: Store, workspace_id: int, query: HistoryQuery) -> HistorySpec:
    """Look up what a query names.

    Raises:
        NotFound: a prompt, version or label is unknown.
    """
    links: list[PromptLink] = []
    if query.prompt_id is not None:
        link = find_prompt_link(store, workspace_id, prompt_id=query.prompt_id)
        links += [link] if link else []
    if query.prompt_version_id is not None:
        links.append(get_version_link(store, workspace_id, query.prompt_version_id))
    if query.prompt_label_id is not None:
        links.append(get_labelled_link(store, workspace_id, query.prompt_label_id))
    prompts = {link.prompt_id for link in links}
    numbers = {link.version_number for link in links if link.version_number is not None}
    return HistorySpec(
        ids=None if query.ids is None else tuple(dict.fromkeys(query.ids)),
        prompt_id=next(iter(prompts), None),
        version_number=next(iter(numbers), None),
        start_time=query.start_time,
        end_time=query.end_time,
        limit=query.limit,
        variables=query.variables,
        fields=query.fields,
        nothing=len(prompts) > 1 or len(numbers) > 1,
        filter_group=query.filter_group,
        q=query.q,
        sort_by=query.sort_by,
        descending=query.descending,
        cost_breakdown_key=query.cost_breakdown_key,
    )


def write_history(store: Store, operation: Operation, target: ImportTarget, report: Report) -> Imported:
    """Read the logs that an import asks for and write them as segments of the sheet, to be committed.

    When it raises, or `report` does, no segment is left.

    Raises:
        ImportRefused: no request matches.
        Unavailable: the disk is full.
    """
    spec = HistorySpec.from_json(operation.spec["history"])
    return write_requests(store, operation.workspace_id, spec, target, report)


def write_requests(
    store: Store, workspace_id: int, spec: HistorySpec, target: ImportTarget, report: Report
) -> Imported:
    """As `write_history`, for what a specification asks of a workspace's logs."""
    # brings pyarrow, which the process that only starts imports does not need
    from storage.engine.segment_sink import SegmentSink  # noqa: PLC0415

    most = MOST_REQUESTS if spec.limit is None else spec.limit
    columns = history_columns(spec)
    read = 0
    with (
        SegmentSink(store.data, target.sheet_id, store.new_id) as sink,
        closing(_exchanges(store, workspace_id, spec, most + 1)) as batches,
    ):
        for batch in batches:
            read += len(batch)
            _write(sink, columns, batch[: most - sink.rows])
            report(min(1.0, read / most), sink.rows)
        if not sink.rows:
            raise ImportRefused(NO_MATCH)
    more = read > most and spec.limit is None
    message = history_message(spec, sink.rows, more=more)
    return Imported(tuple(column.title for column in columns), sink.rows, tuple(sink.segments), message)


def _write(sink: "SegmentSink", columns: Sequence[HistoryColumn], batch: Sequence[LoggedExchange]) -> None:
    from storage.engine.arrow_values import arrow_array  # noqa: PLC0415

    if not batch:
        return
    values = [[column.read(log) for log in batch] for column in columns]
    encodings = [column.encoding_of(held) for column, held in zip(columns, values, strict=True)]
    arrays = [arrow_array(held, encoding) for held, encoding in zip(values, encodings, strict=True)]
    sink.write(len(batch), arrays, encodings)


def _exchanges(
    store: Store, workspace_id: int, spec: HistorySpec, limit: int
) -> Generator[Sequence[LoggedExchange]]:
    if spec.nothing:
        return
    wanted = _found(store, workspace_id, spec, limit) if spec.searches else _plain(spec, limit)
    labels = _Labels(store) if needs_labels(spec) else None
    with closing(scan_request_logs(store, workspace_id, wanted, batch_rows=_BATCH_ROWS)) as batches:
        for batch in batches:
            logs = [_fields(row) for row in batch.to_pylist()]
            scores = _scores(store, workspace_id, logs) if needs_scores(spec) else {}
            yield [
                LoggedExchange(log, scores.get(log["id"], {}), labels.of(log) if labels else ())
                for log in logs
            ]


def _plain(spec: HistorySpec, limit: int) -> LogFilter:
    return LogFilter(
        ids=spec.ids,
        prompt_id=spec.prompt_id,
        prompt_version_number=spec.version_number,
        start_from=spec.start_time,
        start_to=spec.end_time,
        limit=limit,
    )


def _found(store: Store, workspace_id: int, spec: HistorySpec, limit: int) -> LogFilter:
    query = SearchQuery(spec.group(), query_words(spec.q), spec.sort_by, spec.descending)
    if spec.ids is None:
        return LogFilter(ids=tuple(find_request_ids(store, workspace_id, query, limit=limit)))
    found = find_request_ids(store, workspace_id, query, among=spec.ids, limit=len(spec.ids))
    if spec.sort_by is None:
        matching = set(found)
        found = [log_id for log_id in spec.ids if log_id in matching]
    return LogFilter(ids=tuple(found[:limit]))


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    """Turn a row of the scan into JSON values."""
    read = {name: json.loads(row[name]) for name in _JSON}
    times = {name: iso_us(to_us(value)) for name, value in row.items() if isinstance(value, datetime)}
    return {**row, **read, **times, "metadata": dict(row["metadata"] or ())}


def _scores(store: Store, workspace_id: int, logs: Sequence[Mapping[str, Any]]) -> dict[int, dict[str, int]]:
    with store.logs.read() as connection:
        return select_scores_of_many(connection, workspace_id, [log["id"] for log in logs])


class _Labels:
    """Which release labels name which version now, looked up once a prompt."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, dict[int, list[str]]] = {}

    def of(self, log: Mapping[str, Any]) -> Sequence[str]:
        prompt_id, number = log["prompt_id"], log["prompt_version_number"]
        if prompt_id is None or number is None:
            return ()
        if prompt_id not in self._known:
            self._known[prompt_id] = self._look_up(prompt_id)
        return self._known[prompt_id].get(number, ())

    def _look_up(self, prompt_id: int) -> dict[int, list[str]]:
        with self._store.catalog.read() as connection:
            found = select_labels(connection, prompt_id)
        labels: dict[int, list[str]] = {}
        for label in found:
            labels.setdefault(label.prompt_version_number, []).append(label.name)
        return labels
