"""The sandbox as the verbs use it: evaluators bound to the caller's workspace, and the state of its walls."""

from storage.domain.errors import PromptlakeError
from storage.domain.findings import Finding, ok, warning
from storage.domain.keys import Principal
from storage.domain.walls import Wall, fallen
from storage.engine.sandbox.kinds import JINJA2
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.templates import SandboxedJinja2
from storage.store import Store


def jinja2_of(store: Store, who: Principal) -> SandboxedJinja2:
    """Return the jinja2 evaluator of the caller's workspace; no process is started before it is asked."""
    return SandboxedJinja2(store.sandbox, who.workspace_id)


def walls() -> tuple[Wall, ...]:
    """Start a worker, have it attack its walls, and return what it found; needs no store."""
    pool = Pool()
    try:
        return pool.walls(JINJA2)
    except PromptlakeError as error:
        return (Wall("start", stands=False, detail=error.message),)
    finally:
        pool.close()


def check_sandbox() -> list[Finding]:
    """Say which walls of the sandbox stand on this machine."""
    found = walls()
    standing = ", ".join(wall.name for wall in found if wall.stands)
    missing = [
        warning(
            "sandbox",
            f"{wall.name}: {wall.detail}",
            "jinja2 templates are refused; f-string templates work. Use Linux on x86_64 or aarch64, and a "
            "container profile that allows seccomp filters."
            if wall.needed
            else "The other walls hold without it; run the service as a user of its own.",
        )
        for wall in found
        if not wall.stands
    ]
    return missing if fallen(found) else [ok("sandbox", f"walls that stand: {standing}"), *missing]
