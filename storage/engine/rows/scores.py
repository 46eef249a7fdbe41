"""Rows of scores: one value per request and name, a repeat replaces it."""

import sqlalchemy as sa

from storage.domain.request_logs import Score
from storage.engine.catalog import Connection
from storage.engine.log_schema import log_scores, log_state

_NEXT_CHANGE = (
    log_state.update().values(score_change=log_state.c.score_change + 1).returning(log_state.c.score_change)
)


def upsert_score(
    connection: Connection, workspace_id: int, request_id: int, score: Score, now_us: int
) -> None:
    """Set the score of a request under a name."""
    change = connection.execute(_NEXT_CHANGE).scalar_one()
    where = (
        (log_scores.c.workspace_id == workspace_id)
        & (log_scores.c.request_id == request_id)
        & (log_scores.c.name == score.name)
    )
    values = {"score": score.score, "updated_us": now_us, "change": change}
    if connection.execute(log_scores.update().where(where).values(values)).rowcount == 0:
        whose = {"workspace_id": workspace_id, "request_id": request_id, "name": score.name}
        connection.execute(log_scores.insert().values(whose | values))


def select_scores_of(connection: Connection, workspace_id: int, request_id: int) -> dict[str, int]:
    """Scores of one request by name, in the order they were last set."""
    query = (
        sa.select(log_scores.c.name, log_scores.c.score)
        .where((log_scores.c.workspace_id == workspace_id) & (log_scores.c.request_id == request_id))
        .order_by(log_scores.c.change)
    )
    return {row.name: row.score for row in connection.execute(query)}


def select_scores_of_many(
    connection: Connection, workspace_id: int, request_ids: list[int]
) -> dict[int, dict[str, int]]:
    """Scores by request and name; a request without scores is left out."""
    query = sa.select(log_scores.c.request_id, log_scores.c.name, log_scores.c.score).where(
        (log_scores.c.workspace_id == workspace_id) & log_scores.c.request_id.in_(request_ids)
    )
    found: dict[int, dict[str, int]] = {}
    for request_id, name, score in connection.execute(query):
        found.setdefault(request_id, {})[name] = score
    return found
