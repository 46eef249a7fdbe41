"""The sandbox as the verbs use it: evaluators bound to the caller's workspace, and the state of its walls."""

from storage.domain.errors import PromptlakeError
from storage.domain.keys import Principal
from storage.domain.walls import Wall
from storage.engine.sandbox.kinds import JINJA2
from storage.engine.sandbox.templates import SandboxedJinja2
from storage.store import Store


def jinja2_of(store: Store, who: Principal) -> SandboxedJinja2:
    """Return the jinja2 evaluator of the caller's workspace; no process is started before it is asked."""
    return SandboxedJinja2(store.sandbox, who.workspace_id)


def walls(store: Store) -> tuple[Wall, ...]:
    """Start a worker, have it attack its walls, and return what it found."""
    try:
        return store.sandbox.walls(JINJA2)
    except PromptlakeError as error:
        return (Wall("start", stands=False, detail=error.message),)
