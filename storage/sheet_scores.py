"""The score of a sheet: how it is made up, made anew, and kept with the version that it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from storage.audit import record_audit
from storage.domain.columns import Column
from storage.domain.errors import InvalidConfig
from storage.domain.keys import Principal
from storage.domain.paging import Page, PageRequest, page_of, plan_page
from storage.domain.sheet_scores import (
    CUSTOM,
    MOST_CUSTOM_CELLS,
    ScoreConfiguration,
    ScoreType,
    Tally,
    VersionScore,
    changed_configuration,
    column_score,
    custom_result,
    overall,
    scored_columns,
)
from storage.domain.versions import sheet_updated
from storage.engine.column_values import read_computed
from storage.engine.rows.columns import select_columns
from storage.engine.rows.sheet_scores import (
    find_score,
    score_configuration,
    select_scores,
    update_score,
    update_score_configuration,
)
from storage.engine.sheet_rows import rows_bytes
from storage.engine.snapshots import Snapshot
from storage.engine.stretches import stretches
from storage.sandbox import code_of, read_code
from storage.sheets import require_sheet
from storage.store import Store
from storage.versions import add_version

_CHUNK_ROWS, _CHUNK_BYTES = 250_000, 32 << 20


class SheetScore:
    """What is known of a sheet's score; `stale`: the sheet has changed since it was made."""

    __slots__ = ("configuration", "score", "stale", "version_count")

    def __init__(
        self, score: Mapping[str, Any], configuration: ScoreConfiguration, *, stale: bool, version_count: int
    ) -> None:
        self.score, self.configuration = score, configuration
        self.stale, self.version_count = stale, version_count


def get_score(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID) -> SheetScore:
    """Return the last score that was made of the sheet's version, and how it is made up.

    Raises:
        NotFound: no such sheet.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        score, snapshot_no = find_score(connection, sheet.no, sheet.version_count)
        configuration = ScoreConfiguration.from_json(score_configuration(connection, sheet.no))
    stale = snapshot_no is not None and snapshot_no != sheet.head_no
    return SheetScore(score, configuration, stale=stale, version_count=sheet.version_count)


def configure_score(
    store: Store,
    who: Principal,
    *,
    table_id: UUID,
    sheet_id: UUID,
    score_type: ScoreType | None = None,
    column_ids: Sequence[UUID] | None = None,
    code: str | None = None,
    language: str | None = None,
) -> SheetScore:
    """Set how a sheet is scored; what changes something makes a version.

    Raises:
        NotFound: no such sheet.
        InvalidConfig: a column is not the sheet's, or the code does not parse.
    """
    before = get_score(store, who, table_id=table_id, sheet_id=sheet_id).configuration
    given = {"score_type": score_type, "column_ids": column_ids, "code": code, "language": language}
    wanted = changed_configuration(before, **given)  # type: ignore[arg-type]  # each of its own type
    if wanted.code is not None and (wanted.code, wanted.language) != (before.code, before.language):
        _check_code(store, who, wanted)
    with store.catalog.transaction() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        before = ScoreConfiguration.from_json(score_configuration(connection, sheet.no))
        after = changed_configuration(before, **given)  # type: ignore[arg-type]
        _check_columns(select_columns(connection, sheet.no), column_ids or ())
        if after == before:
            return SheetScore({}, after, stale=False, version_count=sheet.version_count)
        update_score_configuration(connection, sheet.no, after.to_json())
        changes = sheet_updated(
            sheet.id, {"score_configuration": before.to_json()}, {"score_configuration": after.to_json()}
        )
        add_version(
            connection,
            store,
            who,
            sheet,
            name="Score configuration changed",
            source="automatic",
            deltas=[changes],
            now=store.now(),
        )
        details = {"score_type": after.score_type, "column_count": len(after.column_ids or ())}
        record_audit(
            connection,
            store,
            who,
            action="configure_score",
            kind="sheet",
            entity_id=sheet.id,
            details=details,
        )
        return SheetScore({}, after, stale=False, version_count=sheet.version_count + 1)


def make_score(store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID) -> SheetScore:
    """Score the sheet as it stands, and keep that with its version.

    Raises:
        NotFound: no such sheet.
        InvalidConfig: custom code is asked for over too many cells.
        Unguarded, Unavailable: custom code cannot be evaluated, for good or for now.
    """
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        configuration = ScoreConfiguration.from_json(score_configuration(connection, sheet.no))
        columns = scored_columns(configuration, select_columns(connection, sheet.no))
        snapshot = store.snapshots.get(connection, sheet.head_no)
    make = _custom if configuration.score_type == CUSTOM else _by_columns
    made = make(store, who, snapshot, configuration, columns)
    score = {
        **made,
        "score_type": configuration.score_type,
        "row_count": snapshot.manifest.row_count,
        "computed_at": store.now().isoformat().replace("+00:00", "Z"),
    }
    with store.catalog.transaction() as connection:
        now = require_sheet(connection, who, table_id, sheet_id)
        update_score(connection, sheet.no, sheet.version_count, score=score, snapshot_no=snapshot.no)
        record_audit(
            connection,
            store,
            who,
            action="score",
            kind="sheet",
            entity_id=sheet.id,
            details={"version_number": sheet.version_count, "score": score["score"]},
        )
    return SheetScore(
        score, configuration, stale=now.head_no != snapshot.no, version_count=sheet.version_count
    )


def score_now(store: Store, snapshot: Snapshot, columns: Sequence[Column]) -> dict[str, Any]:
    """Return `score` and `columns` of what cells hold now; keeps nothing."""
    configuration = ScoreConfiguration()
    return _by_columns(store, None, snapshot, configuration, scored_columns(configuration, columns))


def list_scores(
    store: Store, who: Principal, *, table_id: UUID, sheet_id: UUID, request: PageRequest
) -> Page[VersionScore]:
    """List the scores of a sheet's versions by number; versions that were never scored are left out.

    Raises:
        NotFound: no such sheet.
        InvalidCursor: the cursor is of another list.
    """
    filters = {"sheet": str(sheet_id), "list": "scores"}
    window = plan_page(store.cursor_key, request, sort="version_number", filters=filters)
    with store.catalog.read() as connection:
        sheet = require_sheet(connection, who, table_id, sheet_id)
        found = select_scores(
            connection, sheet.no, after=window.position, descending=window.descending, limit=window.limit
        )
    return page_of(store.cursor_key, window, found, lambda one: one.version_number)


def _by_columns(
    store: Store,
    who: Principal | None,
    snapshot: Snapshot,
    configuration: ScoreConfiguration,
    columns: Sequence[Column],
) -> dict[str, Any]:
    from storage.engine.score_tally import tally  # noqa: PLC0415 - loads frames, which most calls do without

    del who
    scores = []
    for column in columns:
        found = Tally()
        rows = snapshot.manifest.row_count
        for start, count in stretches(
            store.segments, [(snapshot, column.no)], rows, _CHUNK_ROWS, _CHUNK_BYTES
        ):
            values = read_computed(store.segments, snapshot, column, start, count)
            found = found.plus(tally(values, configuration.score_type))
        scores.append(column_score(configuration, column, found))
    spelled = [{**asdict(one), "column_id": str(one.column_id)} for one in scores]
    return {"score": overall(scores), "columns": spelled}


def _custom(
    store: Store,
    who: Principal,
    snapshot: Snapshot,
    configuration: ScoreConfiguration,
    columns: Sequence[Column],
) -> dict[str, Any]:
    from storage.engine.score_tally import row_objects  # noqa: PLC0415 - as above

    count = snapshot.manifest.row_count
    if count * len(columns) > MOST_CUSTOM_CELLS:
        raise InvalidConfig(
            f"column_ids: custom code takes at most {MOST_CUSTOM_CELLS} cells; choose fewer columns"
        )
    if rows_bytes(store.segments, snapshot, [column.no for column in columns], 0, count) > _CHUNK_BYTES:
        raise InvalidConfig(
            f"column_ids: custom code takes at most {_CHUNK_BYTES >> 20} MB of values; choose fewer columns"
        )
    frames = {column.title: read_computed(store.segments, snapshot, column, 0, count) for column in columns}
    evaluator = code_of(store, who, str(configuration.language))
    with evaluator.opened(configuration.code) as evaluation:
        found = evaluation.evaluate({"rows": row_objects(frames, count)}, 1)
    error = found.errors.get(0)
    if error is not None:
        return {"score": None, "columns": [], "error": error.code, "error_message": error.message}
    score, details, wrong = custom_result(found.values[0])
    if wrong is not None:
        return {"score": None, "columns": [], "error": "code_error", "error_message": wrong}
    return {"score": score, "columns": [], "details": dict(details)}


def _check_code(store: Store, who: Principal, configuration: ScoreConfiguration) -> None:
    try:
        read_code(store, who, str(configuration.language), str(configuration.code))
    except InvalidConfig as error:
        raise InvalidConfig(error.message.removeprefix("config.")) from error


def _check_columns(columns: Sequence[Column], wanted: Sequence[UUID]) -> None:
    known = {column.id for column in columns}
    for at, one in enumerate(wanted):
        if one not in known:
            raise InvalidConfig(f"column_ids[{at}]: the sheet has no column {one}")
