"""Is the process up; is work accepted and run."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse

from api.deps import service_of
from api.home_lock import read_state
from api.schemas.health import Alive, NotReady, Ready
from storage.domain.errors import Unavailable
from storage.request_logs import logs_are_written
from storage.store import Store
from storage.workspaces import list_workspaces

router = APIRouter(tags=["health"])


@router.get("/health", summary="The process is up")
async def health() -> Alive:
    return Alive()


@router.get(
    "/ready",
    summary="Work is accepted and run",
    response_model=Ready,
    responses={503: {"description": "Not yet; `Retry-After` says when to ask again", "model": NotReady}},
)
def ready(request: Request) -> JSONResponse:
    """Say how catalog, log tail, Dagster and workers are; 503 until each of them is ready."""
    service = service_of(request)
    runs = service.runs.readiness()
    states = {
        "catalog": _word(_catalog_answers(service.store)),
        "logs": _word(logs_are_written(service.logs)),
        "dagster": _word(runs.dagster),
        "workers": _word(runs.workers),
    }
    missing = [name for name, state in states.items() if state != "ready"]
    body: dict[str, Any] = {**states, "processes": _processes(service.settings.root)}
    if not missing:
        return JSONResponse({"status": "ready", **body})
    message = f"Not ready yet: {', '.join(missing)}. `promptlake doctor` says more."
    refusal = {"success": False, "message": message, "error": Unavailable.code}
    return JSONResponse({**refusal, **body}, status_code=503, headers={"Retry-After": "1"})


def _word(good: bool) -> str:  # noqa: FBT001  # a word for a truth
    return "ready" if good else "not ready"


def _catalog_answers(store: Store) -> bool:
    try:
        list_workspaces(store)
    except Unavailable:
        return False
    return True


def _processes(root: Path) -> list[dict[str, Any]]:
    return [{key: process[key] for key in ("name", "state", "restarts")} for process in read_state(root)]
