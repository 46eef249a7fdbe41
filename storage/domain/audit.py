"""Entries of the audit trail."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what to which entity, and when; without a user it was the operator, at the command line."""

    id: int
    workspace_id: int
    user_id: int | None
    created_by: str | None
    action: str
    kind: str
    entity_id: str
    details: Mapping[str, Any]
    created_at: datetime
