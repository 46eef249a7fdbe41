"""The audit trail, read by administrators."""

from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.audit import AuditEntryOut
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from storage import audit
from storage.domain.errors import InvalidCursor
from storage.domain.paging import PageRequest

router = guarded_router(prefix="/api/public/v2/audit", tags=["audit"])


@router.get("", summary="Read the audit trail", responses=errors(InvalidCursor))
@needs("admin")
def list_audit(
    store: OpenStore,
    who: Who,
    kind: Annotated[str | None, Query(max_length=32, description="Only entities of this kind.")] = None,
    action: Annotated[str | None, Query(max_length=32, description="Only this action.")] = None,
    entity_id: Annotated[str | None, Query(max_length=64, description="Only this entity.")] = None,
    cursor: Cursor = None,
    limit: Limit = 20,
    order: Order = "desc",
) -> PageOut[AuditEntryOut]:
    """List who changed what and when, newest first."""
    page = audit.list_audit(
        store,
        who,
        request=PageRequest(limit, order, cursor),
        kind=kind,
        action=action,
        entity_id=entity_id,
    )
    return page_out(page, AuditEntryOut.of, kind=kind, action=action, entity_id=entity_id)
