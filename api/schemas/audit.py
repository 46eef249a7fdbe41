"""Wire shapes of the audit trail."""

from datetime import datetime
from typing import Any

from api.schemas.base import Answer
from storage.domain.audit import AuditEntry


class AuditEntryOut(Answer):
    """One change; without a user it was made by the operator, at the command line."""

    id: int
    workspace_id: int
    user_id: int | None
    created_by: str | None
    action: str
    kind: str
    entity_id: str
    details: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditEntryOut":
        return cls(
            id=entry.id,
            workspace_id=entry.workspace_id,
            user_id=entry.user_id,
            created_by=entry.created_by,
            action=entry.action,
            kind=entry.kind,
            entity_id=entry.entity_id,
            details=dict(entry.details),
            created_at=entry.created_at,
        )
