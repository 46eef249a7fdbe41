"""Rows of reports: pipelines and their runs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.domain.reports import Report, ReportColumn
from storage.engine.catalog import Connection, new_no
from storage.engine.registry_schema import datasets, reports

KIND = "report"

_LATEST = (
    sa.select(datasets.c.id)
    .where(
        datasets.c.dataset_group_id == reports.c.dataset_group_id,
        datasets.c.deleted_at.is_(None),
        # spelled out, so that SQLite sees that the partial index has them all
        datasets.c.version_number > sa.literal_column("0"),
    )
    .order_by(datasets.c.version_number.desc())
    .limit(1)
    .scalar_subquery()
)
USED_DATASET = sa.case((reports.c.parent_id.is_(None), _LATEST), else_=reports.c.dataset_id)
"""The dataset of a run; of a pipeline the one that a run would take if none is named: the group's latest."""

_FACTS = [USED_DATASET.label(name) if name == "dataset_id" else reports.c[name] for name in Report.__slots__]
_LIVE = reports.c.deleted_at.is_(None)


def insert_report(connection: Connection, values: dict[str, Any]) -> int:
    return new_no(connection.execute(reports.insert().values(values)))


def update_report(connection: Connection, report_id: int, values: dict[str, Any]) -> None:
    connection.execute(reports.update().where(reports.c.id == report_id).values(values))


def find_report(connection: Connection, workspace_id: int, report_id: int) -> Report | None:
    """Find a report that is not deleted."""
    where = (reports.c.id == report_id) & (reports.c.workspace_id == workspace_id) & _LIVE
    return _one(connection, where)


def find_report_of_sheet(connection: Connection, sheet_no: int) -> Report | None:
    """Find the run whose rows a sheet keeps."""
    return _one(connection, (reports.c.sheet_no == sheet_no) & _LIVE)


def select_runs(connection: Connection, report_id: int) -> list[Report]:
    """Return the runs of a pipeline, the oldest first."""
    query = sa.select(*_FACTS).where((reports.c.parent_id == report_id) & _LIVE).order_by(reports.c.id)
    return [_report(row) for row in connection.execute(query).mappings()]


def select_report_page(
    connection: Connection,
    workspace_id: int,
    *,
    name: str | None,
    parent_id: int | None,
    dataset_group_id: int | None,
    offset: int,
    limit: int,
) -> tuple[list[Report], int]:
    """Return reports, the newest first, and how many match; `name` is a part of it, in any case."""
    where = (reports.c.workspace_id == workspace_id) & _LIVE
    if name is not None:
        where &= reports.c.name.icontains(name, autoescape=True)
    if parent_id is not None:
        where &= reports.c.parent_id == parent_id
    if dataset_group_id is not None:
        where &= reports.c.dataset_group_id == dataset_group_id
    total = connection.execute(sa.select(sa.func.count()).select_from(reports).where(where)).scalar_one()
    query = sa.select(*_FACTS).where(where).order_by(reports.c.id.desc()).offset(offset).limit(limit)
    return [_report(row) for row in connection.execute(query).mappings()], total


def mark_report_deleted(connection: Connection, report_id: int, now: datetime) -> None:
    update_report(connection, report_id, {"deleted_at": now, "updated_at": now})


def _one(connection: Connection, where: sa.ColumnElement[bool]) -> Report | None:
    row = connection.execute(sa.select(*_FACTS).where(where)).mappings().first()
    return None if row is None else _report(row)


def _report(row: Mapping[Any, Any]) -> Report:
    return Report(**{**row, "columns": tuple(ReportColumn(**column) for column in row["columns"])})
