"""The score of a sheet: read, configured, made; and its history over versions."""

from uuid import UUID

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import form_only, sheet_path
from api.routing import guarded_router, needs
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.sheet_scores import ScoreAnswer, ScoreUpdate, VersionScoreOut
from storage import sheet_scores
from storage.domain.errors import InvalidConfig, InvalidCursor, Unavailable
from storage.domain.paging import PageRequest

router = guarded_router(prefix="/api/public/v2/tables/{table_id}/sheets/{sheet_id}", tags=["scores"])


@router.get("/score", summary="Get the score of a sheet")
@needs("read", path=form_only("table_id", "sheet_id"))
def get_score(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID) -> ScoreAnswer:
    """Return the last score of the sheet's version, and how it is made up."""
    return ScoreAnswer.of(sheet_scores.get_score(store, who, table_id=table_id, sheet_id=sheet_id))


@router.patch("/score", summary="Configure the score of a sheet", responses=errors(InvalidConfig))
@needs("write:table", path=sheet_path)
def configure_score(
    store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID, body: ScoreUpdate
) -> ScoreAnswer:
    """Set how the sheet is scored; a change makes a version, which has no score yet."""
    found = sheet_scores.configure_score(
        store,
        who,
        table_id=table_id,
        sheet_id=sheet_id,
        score_type=body.score_type,
        column_ids=body.column_ids,
        code=body.code,
        language=body.language,
    )
    return ScoreAnswer.of(found)


@router.post("/score", summary="Score a sheet", responses=errors(InvalidConfig, Unavailable))
@needs("write:table", path=sheet_path)
def make_score(store: OpenStore, who: Who, table_id: UUID, sheet_id: UUID) -> ScoreAnswer:
    """Score the sheet as it stands; the score is kept with its version."""
    return ScoreAnswer.of(sheet_scores.make_score(store, who, table_id=table_id, sheet_id=sheet_id))


@router.get("/versions/score-history", summary="List the scores of versions", responses=errors(InvalidCursor))
@needs("read", path=sheet_path)
def list_scores(
    store: OpenStore,
    who: Who,
    table_id: UUID,
    sheet_id: UUID,
    cursor: Cursor = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> PageOut[VersionScoreOut]:
    """List the scores of the sheet's versions by number; versions never scored are left out."""
    page = sheet_scores.list_scores(
        store, who, table_id=table_id, sheet_id=sheet_id, request=PageRequest(limit, order, cursor)
    )
    return page_out(page, VersionScoreOut.of)
