"""Rows of sheet versions."""

import json
import zlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from storage.domain.versions import Structure, Version
from storage.engine.catalog import Connection
from storage.engine.schema import sheet_versions, users

_FIELDS = [
    *(sheet_versions.c[name] for name in Version.__slots__ if name not in {"created_by", "structure"}),
    sa.func.coalesce(users.c.email, users.c.name).label("created_by"),
]


def insert_version(connection: Connection, values: Mapping[str, Any], structure: Structure) -> None:
    spelled = json.dumps(structure.to_json(), ensure_ascii=False, separators=(",", ":"))
    connection.execute(sheet_versions.insert().values(**values, structure=zlib.compress(spelled.encode())))


def find_version(connection: Connection, sheet_no: int, wanted: int | UUID) -> Version | None:
    """Return a whole version of a sheet, by number or id."""
    field = sheet_versions.c.id if isinstance(wanted, UUID) else sheet_versions.c.version_number
    query = _versions(sheet_no, sheet_versions.c.structure).where(field == wanted)
    row = connection.execute(query).mappings().first()
    return None if row is None else Version(**{**row, "structure": _structure(row["structure"])})


def select_versions(
    connection: Connection, sheet_no: int, *, after: int | None, descending: bool, limit: int
) -> list[Version]:
    """List versions by number, beyond `after`, in the direction asked for; without their structure."""
    number = sheet_versions.c.version_number
    query = _versions(sheet_no).limit(limit).order_by(number.desc() if descending else number)
    if after is not None:
        query = query.where(number < after if descending else number > after)
    return [Version(**row, structure=None) for row in connection.execute(query).mappings()]


def _versions(sheet_no: int, *more: sa.ColumnElement[Any]) -> sa.Select[Any]:
    joined = sheet_versions.join(users, users.c.id == sheet_versions.c.user_id)
    return sa.select(*_FIELDS, *more).select_from(joined).where(sheet_versions.c.sheet_no == sheet_no)


def select_named_versions(connection: Connection, sheet_no: int) -> list[int]:
    """Return the numbers of the versions that were saved under a name."""
    source = sheet_versions.c.metadata["source"].as_string()
    where = (sheet_versions.c.sheet_no == sheet_no) & (source == "named")
    return list(connection.execute(sa.select(sheet_versions.c.version_number).where(where)).scalars())


def find_snapshot_no(connection: Connection, sheet_no: int, number: int) -> int | None:
    """Return the snapshot of a version."""
    where = (sheet_versions.c.sheet_no == sheet_no) & (sheet_versions.c.version_number == number)
    return connection.execute(sa.select(sheet_versions.c.snapshot_no).where(where)).scalar()


def find_version_state(connection: Connection, sheet_no: int, number: int) -> tuple[int, Structure] | None:
    """Return the snapshot number and the structure of a version."""
    query = sa.select(sheet_versions.c.snapshot_no, sheet_versions.c.structure).where(
        (sheet_versions.c.sheet_no == sheet_no) & (sheet_versions.c.version_number == number)
    )
    row = connection.execute(query).first()
    return None if row is None else (row[0], _structure(row[1]))


def _structure(spelled: bytes) -> Structure:
    return Structure.from_json(json.loads(zlib.decompress(spelled)))
