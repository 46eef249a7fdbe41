"""Rows of sheet versions."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from storage.domain.versions import Structure
from storage.engine.catalog import Connection
from storage.engine.schema import sheet_versions


def insert_version(connection: Connection, values: Mapping[str, Any], structure: Structure) -> None:
    spelled = json.dumps(structure.to_json(), ensure_ascii=False, separators=(",", ":"))
    connection.execute(sheet_versions.insert().values(**values, structure=zlib.compress(spelled.encode())))


def find_version_state(connection: Connection, sheet_no: int, number: int) -> tuple[int, Structure] | None:
    """Return the snapshot number and the structure of a version."""
    query = sa.select(sheet_versions.c.snapshot_no, sheet_versions.c.structure).where(
        (sheet_versions.c.sheet_no == sheet_no) & (sheet_versions.c.version_number == number)
    )
    row = connection.execute(query).first()
    return None if row is None else (row[0], Structure.from_json(json.loads(zlib.decompress(row[1]))))
