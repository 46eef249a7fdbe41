"""API keys: their form, their scopes, and what a scope allows."""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from storage.domain.errors import Forbidden, Malformed

KEY_PREFIX = "pl_"
KINDS = (
    "table", "prompt", "folder", "workflow", "dataset", "report", "snippet", "ab_test", "input_variable_set",
)  # fmt: skip
SCOPES = ("read", "ingest", "write", "admin", *(f"write:{kind}" for kind in KINDS))
ANY_WRITE = "write:*"
"""What a call needs that says in its body which kinds it writes: `write`, or one of its narrower forms."""
_VISIBLE = 11


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: a key's workspace, its user (who survives rotation) and its scopes."""

    workspace_id: int
    user_id: int
    user_name: str
    user_email: str | None
    key_id: int
    scopes: frozenset[str]

    @property
    def created_by(self) -> str:
        return self.user_email or self.user_name


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A stored key: whose it is, and until when it counts."""

    principal: Principal
    expires_at: datetime | None
    revoked_at: datetime | None

    def counts_at(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Workspace:
    id: int
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it may be shown; the key itself is shown once, when it is made."""

    id: int
    prefix: str
    workspace: str
    user: str
    email: str | None
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


def new_key() -> str:
    """Make a key: a visible prefix and 256 random bits."""
    return KEY_PREFIX + secrets.token_hex(32)


def key_sha256(key: str) -> str:
    return sha256(key.encode()).hexdigest()


def visible_prefix(key: str) -> str:
    """The part of a key that may be shown to tell it from others."""
    return key[:_VISIBLE] if key.startswith(KEY_PREFIX) else key[:4]


def check_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes in order, each known.

    Raises:
        ValueError: one is unknown, or there is none.
    """
    chosen = sorted(set(scopes))
    unknown = [scope for scope in chosen if scope not in SCOPES]
    if unknown or not chosen:
        raise ValueError(f"Unknown scope {', '.join(unknown) or '(none)'}; known are {', '.join(SCOPES)}")
    return chosen


def allows(scopes: frozenset[str], needed: str) -> bool:
    """Say whether scopes cover a needed one: admin covers all, write all but admin, `write:<kind>` itself."""
    if "admin" in scopes or needed in scopes:
        return True
    if needed == ANY_WRITE:
        return any(scope.partition(":")[0] == "write" for scope in scopes)
    return "write" in scopes and needed != "admin"


def require(principal: Principal, needed: str) -> None:
    """Raise Forbidden unless the key's scopes cover `needed`."""
    if not allows(principal.scopes, needed):
        raise Forbidden(f"This API key lacks the scope `{needed}`")


_WORKSPACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def check_workspace_name(name: str) -> str:
    """Return a workspace name that is also a folder and a schema name.

    Raises:
        ValueError: it has other characters, or is too long.
    """
    if not _WORKSPACE_NAME.fullmatch(name):
        raise ValueError("A workspace name has 1 to 63 letters, digits, `_` and `-`, and starts with no sign")
    return name


def check_workspace(principal: Principal, workspace_id: int | None) -> int:
    """Return the key's workspace, which a given one must be.

    Raises:
        Malformed: it is another, or unknown: callers cannot tell which.
    """
    if workspace_id is not None and workspace_id != principal.workspace_id:
        raise Malformed("Invalid workspace_id")
    return principal.workspace_id
