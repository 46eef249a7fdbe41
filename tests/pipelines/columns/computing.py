"""Runners fed by hand."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pipelines.columns.comparison import Comparison
from pipelines.columns.composition import Composition
from pipelines.columns.values import to_list, values_of
from storage.domain.column_types.binding import Edge
from storage.domain.results import Chunk

IDS = [UUID(int=at) for at in range(1, 4)]
Found = tuple[list[Any], dict[int, str]]


def computed(runner: Any, columns: Sequence[Sequence[Any]]) -> Found:
    rows = range(len(columns[0]))
    held = {one: values_of(list(values)) for one, values in zip(IDS, columns, strict=False)}
    (answers,) = runner.compute(Chunk(rows, rows, held))
    return to_list(answers.values), {at: error.code for at, error in answers.errors.items()}


def compared(kind: str, operator: str, *columns: Sequence[Any], **config: Any) -> Found:
    how = {"type": kind, "operator": operator}
    if "json_path" in config:
        how["json_path"] = config.pop("json_path")
    sources = [str(one) for one in IDS[: len(columns)]]
    return computed(Comparison({"sources": sources, "comparison_type": how, **config}), columns)


def composed(*columns: Sequence[Any], names: Sequence[str] = ("A", "B", "C"), **config: Any) -> Found:
    sources = [str(one) for one in IDS[: len(columns)]]
    edges = [
        Edge(
            column_id=one,
            reference_type="value",
            config_key="sources",
            config_meta={"position": at, "variable_name": names[at]},
        )
        for at, one in enumerate(sources)
    ]
    return computed(Composition({"sources": sources, **config}, edges), columns)
