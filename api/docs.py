"""The documentation page; its assets come from an installed package, so it needs no internet."""

from importlib import resources

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse, Response

from storage.domain.errors import NotFound

_ASSETS = resources.files("fastapi_swagger.resources")
_TYPES = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "favicon-32x32.png": "image/png",
}

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def page() -> HTMLResponse:
    return get_swagger_ui_html(
        openapi_url="openapi.json",
        title="promptlake API",
        swagger_js_url="docs/swagger-ui-bundle.js",
        swagger_css_url="docs/swagger-ui.css",
        swagger_favicon_url="docs/favicon-32x32.png",
        swagger_ui_parameters={"persistAuthorization": True, "filter": True},
    )


@router.get("/docs/{name}")
def asset(name: str) -> Response:
    if name not in _TYPES:
        raise NotFound("No such file")
    return Response(
        (_ASSETS / name).read_bytes(), media_type=_TYPES[name], headers={"Cache-Control": "max-age=86400"}
    )
