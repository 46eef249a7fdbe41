"""Rows of the scores of sheets: the configuration of the sheet, the scores of its versions."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from storage.domain.sheet_scores import VersionScore
from storage.engine.catalog import Connection
from storage.engine.schema import sheet_versions, sheets

_VERSION = sheet_versions.c
_HISTORY = sa.select(_VERSION.id, _VERSION.version_number, _VERSION.name, _VERSION.created_at, _VERSION.score)


def score_configuration(connection: Connection, sheet_no: int) -> Mapping[str, Any]:
    """Return what was set of how a sheet is scored; empty when nothing was."""
    query = sa.select(sheets.c.score_configuration).where(sheets.c.no == sheet_no)
    found: Mapping[str, Any] = connection.execute(query).scalar_one()
    return found


def update_score_configuration(connection: Connection, sheet_no: int, value: Mapping[str, Any]) -> None:
    change = sheets.update().where(sheets.c.no == sheet_no).values(score_configuration=dict(value))
    connection.execute(change)


def find_score(
    connection: Connection, sheet_no: int, version_number: int
) -> tuple[Mapping[str, Any], int | None]:
    """Return the score of a version, and the snapshot that it was made of; empty and None: it has none."""
    query = sa.select(_VERSION.score, _VERSION.score_snapshot_no).where(_of(sheet_no, version_number))
    score, snapshot_no = connection.execute(query).one()
    return score, snapshot_no


def update_score(
    connection: Connection,
    sheet_no: int,
    version_number: int,
    *,
    score: Mapping[str, Any],
    snapshot_no: int,
) -> None:
    values = {"score": dict(score), "score_snapshot_no": snapshot_no}
    connection.execute(sheet_versions.update().where(_of(sheet_no, version_number)).values(**values))


def carry_score(
    connection: Connection, sheet_no: int, *, source: int, made_of: int, number: int, snapshot_no: int
) -> None:
    """Give a version (`number`) the score of another that holds the same, if it was made of just that.

    `made_of` and `snapshot_no` are what the two hold.
    """
    score, scored_no = find_score(connection, sheet_no, source)
    if scored_no == made_of:
        update_score(connection, sheet_no, number, score=score, snapshot_no=snapshot_no)


def select_scores(
    connection: Connection, sheet_no: int, *, after: int | None, descending: bool, limit: int
) -> list[VersionScore]:
    """List the versions that have a score by number, beyond `after`, in the direction asked for."""
    number = _VERSION.version_number
    query = _HISTORY.where((_VERSION.sheet_no == sheet_no) & _VERSION.score_snapshot_no.is_not(None))
    if after is not None:
        query = query.where(number < after if descending else number > after)
    query = query.order_by(number.desc() if descending else number).limit(limit)
    return [VersionScore(**row) for row in connection.execute(query).mappings()]


def _of(sheet_no: int, version_number: int) -> sa.ColumnElement[bool]:
    return (_VERSION.sheet_no == sheet_no) & (_VERSION.version_number == version_number)
