"""What a day of logging comes to, by model and by hour."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.domain.charts import hour_chart


@dataclass(frozen=True, slots=True)
class ModelDay:
    """Sums over the logs of one model: cost as callers gave it, latencies in milliseconds."""

    model: str
    requests: int
    errors: int
    input_tokens: int
    output_tokens: int
    cost: float
    latency_ms_p50: float
    latency_ms_p95: float


@dataclass(frozen=True, slots=True)
class DaySummary:
    """The logs that were recorded on one day (UTC), those of all workspaces together."""

    day: str
    workspaces: int
    models: Sequence[ModelDay]
    by_hour: Sequence[tuple[int, int, int]]
    """Hour, requests, errors; hours without requests are left out."""

    def total(self, name: str) -> float:
        values: list[float] = [getattr(model, name) for model in self.models]
        return sum(values)

    def table(self) -> str:
        """The models as a table of Markdown, the busiest first."""
        lines = [
            "| Model | Requests | Errors | Input tokens | Output tokens | Cost | p50 ms | p95 ms |",
            "|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {_cell(one.model)} | {one.requests:,} | {one.errors:,} | {one.input_tokens:,} "
            f"| {one.output_tokens:,} | {one.cost:,.4f} | {one.latency_ms_p50:,.0f} "
            f"| {one.latency_ms_p95:,.0f} |"
            for one in self.models
        ]
        return "\n".join(lines)

    def chart(self) -> str:
        """Requests by hour (UTC), errors in red, as SVG."""
        return hour_chart({hour: (requests, errors) for hour, requests, errors in self.by_hour})


def _cell(text: str) -> str:
    """A text that callers chose, as it stands in a table of Markdown: code, so that it means nothing else."""
    plain = " ".join(text.split()).replace("|", "/").replace("`", "'")
    return f"`{plain[:80]}`"
