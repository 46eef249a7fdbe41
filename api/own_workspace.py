"""`workspace_id` in bodies: it may stand in each, and is the key's own."""

from typing import Any, get_args

from pydantic import BaseModel

from storage.domain.keys import Principal, check_workspace

_FIELD = "workspace_id"


def is_untold(shape: Any) -> bool:
    """Say whether a shape, or one of several, refuses unknown keys and does not name the workspace itself."""
    return any(
        isinstance(one, type)
        and issubclass(one, BaseModel)
        and one.model_config.get("extra") == "forbid"
        and _FIELD not in one.model_fields
        for one in get_args(shape) or (shape,)
    )


def leave_out_own(body: Any, who: Principal) -> None:
    """Take the own workspace out of a body whose shape does not name it; a wrong type stays, and is told.

    Raises:
        Malformed: it is another workspace.
    """
    if not isinstance(body, dict) or _FIELD not in body:
        return
    given = body[_FIELD]
    if given is None or type(given) is int:
        check_workspace(who, given)
        del body[_FIELD]
