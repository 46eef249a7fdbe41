"""Patches over logs: immutable segments and the tail read as what was said of them since makes them.

`log_patches` in the log database holds one merged patch a request (`rows.log_patches.PatchRow`). Whoever
reads logs takes the patches in the same read transaction as manifest and tail (`read_moment` does), makes
`Patches.of(rows)`, registers `patches.arrow()` under `patches.relation`, and wraps each part that it reads
in `patches.over(select, first_id=..., last_id=...)`: a part without a patched request comes back as it is,
so that unpatched reads stay as they were. One log by id: `storage.domain.log_patches.apply_patch`.

Whoever writes logs into a new file (a flush, a compaction) does the same while it writes, and in the
transaction that names the file calls `rows.log_patches.forget_patches` with the rows that it folded in; one
that grew meanwhile stays, and applying it again does no harm. After that `Patches` no longer knows them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pydantic_core import to_json

from storage.engine.rows.log_patches import PatchRow

if TYPE_CHECKING:
    import pyarrow as pa

RELATION = "log_patches_"


@dataclass(frozen=True, slots=True)
class Patches:
    """The patches of one workspace at one moment, by request id; `relation` is how a query names them."""

    rows: Sequence[PatchRow] = ()
    ids: Sequence[int] = ()
    relation: str = RELATION

    @classmethod
    def of(cls, rows: Sequence[PatchRow], relation: str = RELATION) -> Self:
        in_order = sorted(rows, key=lambda row: row.request_id)
        return cls(in_order, [row.request_id for row in in_order], relation)

    def touch(self, first_id: int, last_id: int) -> bool:
        """Say whether a request of these ids (inclusive) is patched."""
        place = bisect_left(self.ids, first_id)
        return place < len(self.ids) and self.ids[place] <= last_id

    def over(self, select: str, *, first_id: int, last_id: int) -> str:
        """SELECT of the promised columns, patched, from a SELECT of them over these ids (inclusive)."""
        return self.joined(select) if self.touch(first_id, last_id) else select

    def joined(self, select: str) -> str:
        """As `over`, whatever the ids."""
        return (
            "SELECT l.* REPLACE ("  # noqa: S608
            "CASE WHEN p.metadata IS NULL THEN l.metadata "
            "ELSE map_concat(l.metadata, p.metadata) END AS metadata, "
            "CASE WHEN p.prompt_id IS NULL THEN l.prompt_id ELSE p.prompt_id END AS prompt_id, "
            "CASE WHEN p.prompt_id IS NULL THEN l.prompt_name ELSE p.prompt_name END AS prompt_name, "
            "CASE WHEN p.prompt_id IS NULL THEN l.prompt_version_number "
            "ELSE p.prompt_version_number END AS prompt_version_number, "
            "coalesce(p.prompt_input_variables, l.prompt_input_variables) AS prompt_input_variables"
            f") FROM ({select}) l LEFT JOIN {self.relation} p ON p.request_id = l.id"
        )

    def arrow(self) -> "pa.Table":
        """The patches as DuckDB takes them, one row a request, columns null where nothing was said."""
        import pyarrow as pa  # noqa: PLC0415

        def values(name: str) -> list[object]:
            return [row.patch.get(name) for row in self.rows]

        maps = [None if found is None else list(found.items()) for found in values("metadata")]  # type: ignore[attr-defined]
        variables = [None if v is None else to_json(v).decode() for v in values("prompt_input_variables")]
        return pa.table(
            {
                "request_id": pa.array(self.ids, pa.int64()),
                "metadata": pa.array(maps, pa.map_(pa.string(), pa.string())),
                "prompt_id": pa.array(values("prompt_id"), pa.int64()),
                "prompt_name": pa.array(values("prompt_name"), pa.string()),
                "prompt_version_number": pa.array(values("prompt_version_number"), pa.int64()),
                "prompt_input_variables": pa.array(variables, pa.string()),
            }
        )


NONE = Patches()
