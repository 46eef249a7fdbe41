"""AB tests and input variable sets: made, listed, read, deleted; the same routes for both."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.paths import path_number
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.documents import DocumentBody, DocumentOut
from api.schemas.pages import Cursor, Limit, Order, PageOut, page_out
from api.schemas.tables import Done
from storage import documents
from storage.domain.documents import DocumentKind
from storage.domain.errors import Conflict, InvalidCursor, NotFound
from storage.domain.keys import Principal
from storage.domain.paging import PageRequest
from storage.store import Store

router = APIRouter()


def _add_routes(kind: DocumentKind, prefix: str) -> None:
    """Add the routes of one kind; the id in their paths is called after it."""
    id_name = f"{kind}_id"
    scope = f"write:{kind}"
    one = f"/{{{id_name}}}"
    routes = guarded_router(prefix=prefix, tags=[f"{kind.words}s"])

    def check_id(store: Store, who: Principal, path: Mapping[str, str]) -> None:
        documents.get_document(store, who, kind, path_number(path, id_name))

    @routes.post("", status_code=201, summary=f"Create an {kind.words}", responses=errors(Conflict, NotFound))
    @needs(scope)
    def create(store: OpenStore, who: Who, body: DocumentBody) -> DocumentOut:
        check_workspace_id(who, body.workspace_id)
        made = documents.create_document(
            store, who, kind, name=body.name, content=body.content, folder_id=body.folder_id
        )
        return DocumentOut.of(made)

    @routes.get("", summary=f"List {kind.words}s", responses=errors(InvalidCursor))
    @needs("read")
    def list_all(
        store: OpenStore,
        who: Who,
        name: Annotated[str | None, Query(description="Any part of the name, in any case.")] = None,
        cursor: Cursor = None,
        limit: Limit = 20,
        order: Order = "desc",
    ) -> PageOut[DocumentOut]:
        request = PageRequest(limit, order, cursor)
        page = documents.list_documents(store, who, kind, request=request, name=name)
        return page_out(page, DocumentOut.of, name=name)

    @routes.get(one, summary=f"Read an {kind.words}")
    @needs("read", path=check_id)
    def get(store: OpenStore, who: Who, document_id: Annotated[int, Path(alias=id_name)]) -> DocumentOut:
        return DocumentOut.of(documents.get_document(store, who, kind, document_id))

    @routes.delete(one, summary=f"Delete an {kind.words}")
    @needs(scope, path=check_id)
    def delete(store: OpenStore, who: Who, document_id: Annotated[int, Path(alias=id_name)]) -> Done:
        documents.delete_document(store, who, kind, document_id)
        return Done(message=f"{kind.words[0].upper()}{kind.words[1:]} deleted")

    router.include_router(routes)


_add_routes(DocumentKind.AB_TEST, "/rest/ab-tests")
_add_routes(DocumentKind.INPUT_VARIABLE_SET, "/rest/input-variable-sets")
