"""Uploads: files that a caller sent, kept until the work that reads them can no longer be repeated."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Upload:
    """A whole file in the spool: its id, its size, the SHA-256 (hexadecimal) of its bytes."""

    id: UUID
    bytes: int
    sha256: str

    def spec(self) -> dict[str, Any]:
        """Spell it for the spec of an operation."""
        return {"id": str(self.id), "bytes": self.bytes, "sha256": self.sha256}


def upload_of(spec: dict[str, Any]) -> Upload:
    """Read what `Upload.spec` wrote."""
    return Upload(UUID(spec["id"]), int(spec["bytes"]), str(spec["sha256"]))
