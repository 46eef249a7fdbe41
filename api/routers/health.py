"""Is the process up."""

from fastapi import APIRouter

router = APIRouter(tags=["health"])


@router.get("/health", summary="The process is up")
async def health() -> dict[str, str]:
    return {"status": "ok"}
