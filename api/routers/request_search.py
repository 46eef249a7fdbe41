"""Search of request logs, and sums over what matches."""

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.request_search import AnalyticsAnswer, SearchAnswer, SearchBody
from storage import request_search
from storage.domain.errors import Unavailable

router = guarded_router(prefix="/api/public/v2/requests", tags=["request logs"])


@router.post(
    "/search",
    summary="Search logged requests",
    response_model_exclude_unset=True,
    responses=errors(Unavailable),
)
@needs("read", deep_json=True)
def search_requests(store: OpenStore, who: Who, body: SearchBody) -> SearchAnswer:
    """Find the requests that match filters and words, logged ones at once, the newest first by default."""
    found = request_search.search_requests(store, who, body.query(), page=body.page, per_page=body.per_page)
    return SearchAnswer.of(found, prompt_names=body.include_prompt_name)


@router.post("/analytics", summary="Sum up logged requests", responses=errors(Unavailable))
@needs("read", deep_json=True)
def analyze_requests(store: OpenStore, who: Who, body: SearchBody) -> AnalyticsAnswer:
    """Sum up the requests that a search with this body finds; page, per_page and order have no meaning."""
    return AnalyticsAnswer.model_validate(request_search.analyze_requests(store, who, body.query()))
