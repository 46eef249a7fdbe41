"""The application: families of routes behind one envelope, one error shape, one description."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from api import docs
from api.auth import Authenticator
from api.deps import Service
from api.envelope import Envelope
from api.errors import handle_fact, handle_http, handle_validation
from api.methods import FixedPaths, methods_by_path
from api.openapi import describe
from api.routers import (
    audit,
    cells,
    columns,
    dataset_groups,
    dataset_versions,
    datasets,
    documents,
    folders,
    health,
    imports,
    legacy_tracking,
    log_intake,
    new_sheets,
    prompt_labels,
    recalculations,
    rendered_templates,
    reports,
    request_logs,
    request_search,
    rows,
    sheet_export,
    sheet_scores,
    sheets,
    suggestions,
    tables,
    templates,
    tracking,
    versions,
    webhooks,
    workflows,
)
from api.routers.rendered_templates import TEMPLATES_PREFIX
from api.routers.request_logs import LOG_REQUEST_PATH
from api.streams import Streams
from pipelines.runs import Runs
from storage.domain.errors import PromptlakeError
from storage.request_logs import opened_log_desk
from storage.settings import Settings
from storage.store import open_store


class Application(FastAPI):
    """FastAPI, but for the two calls that must be cheap: they are answered below the framework."""

    settings: Settings
    """What the next start serves; the routes are the same whatever it is."""

    _log_request = Envelope(request_logs.LogRequestApp())
    _render = Envelope(rendered_templates.RenderApp())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        below = self._below(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        if below is not None:
            scope["app"] = self
            await below(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def _below(self, scope: Scope) -> ASGIApp | None:
        path: str = scope["path"]
        if path == LOG_REQUEST_PATH:
            return self._log_request
        return self._render if path.startswith(TEMPLATES_PREFIX) and path != TEMPLATES_PREFIX else None


@asynccontextmanager
async def _opened(app: Application) -> AsyncIterator[None]:
    store = open_store(app.settings, stays_ready=True)
    try:
        runs = Runs(app.settings, store)
        async with opened_log_desk(store, runs.flush_soon) as logs:
            streams = Streams()
            app.state.service = Service(app.settings, store, Authenticator(store), logs, runs, streams)
            try:
                yield
            finally:
                streams.close()
                runs.close()
    finally:
        store.close()


def create_app(settings: Settings) -> Application:
    """Make the application; the store is opened when it starts and closed when it ends."""
    app = Application(
        title="promptlake",
        version="1.0.0",
        summary="Prompt operations: request logs, templates, computed sheets.",
        lifespan=_opened,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
    )
    app.settings = settings
    app.add_exception_handler(PromptlakeError, handle_fact)
    app.add_exception_handler(RequestValidationError, handle_validation)
    app.add_exception_handler(HTTPException, handle_http)
    # fixed paths come before parameter paths
    families = (
        docs,
        health,
        folders,
        workflows,
        documents,
        dataset_groups,
        dataset_versions,
        datasets,
        reports,
        templates,
        rendered_templates,
        prompt_labels,
        log_intake,
        request_search,
        suggestions,
        request_logs,
        tracking,
        legacy_tracking,
        tables,
        imports,
        new_sheets,
        sheets,
        sheet_export,
        rows,
        columns,
        recalculations,
        cells,
        sheet_scores,
        versions,
        webhooks,
        audit,
    )
    for family in families:
        app.include_router(family.router)
    app.state.methods = methods_by_path(family.router for family in families)
    # added last is outermost
    app.add_middleware(FixedPaths, methods=app.state.methods)
    app.add_middleware(Envelope)
    describe(app)
    return app
