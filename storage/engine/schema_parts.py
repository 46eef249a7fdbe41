"""What the catalog's tables are made of: their common metadata, and columns that many of them have."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.engine.types import UtcTime

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NEVER_REUSED: dict[str, Any] = {"sqlite_autoincrement": True}


def no_column() -> sa.Column[int]:
    return sa.Column("no", INTEGER, primary_key=True, autoincrement=True)


def id_column() -> sa.Column[int]:
    return sa.Column("id", INTEGER, primary_key=True, autoincrement=True)


def workspace_column() -> sa.Column[int]:
    return sa.Column("workspace_id", sa.ForeignKey("workspaces.id"), nullable=False)


def time_column(name: str, *, nullable: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, UtcTime, nullable=nullable)
