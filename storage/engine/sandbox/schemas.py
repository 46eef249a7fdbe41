"""JSON schemas of one workspace, compiled and held against values in its sandbox worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.errors import InvalidConfig
from storage.engine.sandbox.kinds import JSON_SCHEMA
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.process import Refused

_LONGEST_REASON = 400


@dataclass(frozen=True, slots=True)
class SandboxedSchema:
    """A schema; `where` says in errors what is none."""

    pool: Pool
    workspace_id: int
    schema: Mapping[str, Any]
    where: str = "config.response_format"

    def inspect(self) -> None:
        """Check that it is a schema.

        Raises:
            InvalidConfig: it is none, or refers to what lies elsewhere, or takes too long.
            Unguarded: nothing is evaluated on this machine.
            Unavailable: no worker became free.
        """
        self._asked({"schema": self.schema})

    def find_misfit(self, value: Any) -> str | None:
        """Say where a value does not fit and why; None where it does.

        Raises:
            LimitReached: that took too long, or too much memory.
            InvalidConfig, Unguarded, Unavailable: as `inspect`.
        """
        found = self._asked({"schema": self.schema, "value": value})
        return None if found is None else str(found)[:_LONGEST_REASON].encode("utf-8", "replace").decode()

    def _asked(self, request: Mapping[str, Any]) -> Any:
        try:
            return self.pool.ask(JSON_SCHEMA, self.workspace_id, request)
        except Refused as refused:
            why = str(refused.problem.get("why"))[:_LONGEST_REASON].encode("utf-8", "replace").decode()
            raise InvalidConfig(f"{self.where}: is no JSON schema: {why}") from None
