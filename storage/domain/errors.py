"""Every failure that a caller can cause, as facts; HTTP status is decided by the API alone."""

from dataclasses import dataclass
from typing import ClassVar


class PromptlakeError(Exception):
    """A failure with a machine-readable `code` and a sentence that a person can act on."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unauthorized(PromptlakeError):
    code = "unauthorized"


class Forbidden(PromptlakeError):
    code = "forbidden"


class NotFound(PromptlakeError):
    """The id is unknown, or belongs to another workspace: callers cannot tell which."""

    code = "not_found"


class Malformed(PromptlakeError):
    """The bytes are not what they claim to be (JSON, base64, a workspace of one's own)."""

    code = "validation_error"


@dataclass(frozen=True, slots=True)
class Problem:
    """One value that does not fit: where it stands, why, and pydantic's word for the kind."""

    loc: tuple[str, ...]
    msg: str
    type: str = "value_error"


class Invalid(PromptlakeError):
    """Well-formed input whose shape or values break a rule."""

    code = "validation_error"

    def __init__(self, *problems: Problem) -> None:
        first = problems[0]
        super().__init__(f"{'.'.join(first.loc)}: {first.msg}")
        self.problems = problems


def invalid(loc: str, msg: str, kind: str = "value_error") -> Invalid:
    """Spell one problem of the body; `loc` is a dotted path below the body."""
    return Invalid(Problem(("body", *loc.split(".")), msg, kind))


class InvalidCursor(PromptlakeError):
    code = "invalid_cursor"


class InvalidConfig(PromptlakeError):
    code = "invalid_config"


class Unguarded(InvalidConfig):
    """Expressions of this kind cannot be evaluated safely on this machine, so they are not evaluated."""


class LimitReached(InvalidConfig):
    """An expression met a limit of the sandbox; `limit` is one word (time, memory, output, ...)."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class WrongColumnType(PromptlakeError):
    """The columns of this type are not written, or not computed, by such a call."""

    code = "validation_error"


class DependencyCycle(PromptlakeError):
    code = "dependency_cycle"


class Conflict(PromptlakeError):
    code = "conflict"


class CommitConflict(Conflict):
    """Somebody else changed the sheet between reading and writing it; the same call may work now."""


class ImportInProgress(Conflict):
    code = "import_in_progress"


class PayloadTooLarge(PromptlakeError):
    code = "payload_too_large"


class RateLimited(PromptlakeError):
    """Carries when to come back (whole seconds) and the limit for the response's headers."""

    code = "rate_limited"

    def __init__(self, message: str, *, retry_after_s: int, limit: int, reset_at_epoch_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limit = limit
        self.reset_at_epoch_s = reset_at_epoch_s


class Unavailable(PromptlakeError):
    """Nothing was written; the same call may work after `retry_after_s` seconds."""

    code = "unavailable"

    def __init__(self, message: str, *, retry_after_s: int = 5) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
