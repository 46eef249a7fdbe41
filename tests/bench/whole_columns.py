"""Whole columns of a sheet, computed as a run does it: from its segments to committed ones.

Rates are rows a second of CPU time, of this process and of the sandbox worker together; the yardstick reads
the column from Parquet, computes in the bare engine of frames or in none, and writes Parquet.
"""

import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from storage.engine.rows.recalculations import set_fingerprint
from storage.settings import Settings
from storage.store import Store, opened
from storage.workspaces import bootstrap, find_key
from tests.bench.expressions import F_STRING, JAVASCRIPT, JINJA2, PYTHON, SQL
from tests.bench.measure import Bench
from tests.recalculating import Bench as Sheet

UNCHANGED_S = 3.0
_KEY = "bench-of-columns-0123456789abcdef0123"


def _prompt(text: str, template_format: str) -> Mapping[str, Any]:
    blueprint = {"content": [{"type": "text", "text": text}], "template_format": template_format}
    return {
        "inline_template": {"prompt_template": blueprint},
        "prompt_template_variable_mappings": {"text": "text", "num": "num"},
        "return_template_only": True,
    }


_CONFIGS: Sequence[tuple[str, int, str, Mapping[str, Any]]] = (
    ("comparison", 500_000, "comparison", {"sources": ["text", "other"]}),
    (
        "comparison of JSON that differs",
        500_000,
        "comparison",
        {"sources": ["json", "JSON"], "comparison_type": {"type": "JSON"}},
    ),
    ("score", 500_000, "score", {"sources": ["num", "num"], "metric": "absolute_numeric_distance"}),
    ("composition", 500_000, "composition", {"sources": ["text", "num"], "operation": "concat"}),
    ("f-string", 500_000, "prompt_template", _prompt(F_STRING, "f-string")),
    ("SQL", 400_000, "code", {"code": SQL, "language": "SQL"}),
    ("jinja2", 150_000, "prompt_template", _prompt(JINJA2, "jinja2")),
    ("PYTHON", 100_000, "code", {"code": PYTHON}),
    ("JAVASCRIPT", 30_000, "code", {"code": JAVASCRIPT, "language": "JAVASCRIPT"}),
)


def run(bench: Bench) -> None:
    """Compute a column of each engine, then find five columns unchanged by their hashes alone."""
    rows = bench.sized(1_000_000, 2_000)
    with opened(Settings(home=bench.folder, api_key=_KEY)) as store:
        bootstrap(store)
        facts = find_key(store, _KEY)
        if facts is None:
            raise RuntimeError("the first key is not known")
        held = [
            [
                number,
                f"hello world how are you {number}",
                f"hello world how are you {number - number % 2}",
                {"a": number, "b": [number, "x"]},
                {"a": number, "b": [number + 1, "x"]},
            ]
            for number in range(rows)
        ]
        sheet = Sheet(store, facts.principal, ["num", "text", "other", "json", "JSON"], held)
        bare = _bare(bench.folder, held)
        for title, aim, kind, config in _CONFIGS:
            operation = sheet.add(title, kind, **config).operation
            before = _all_cpu()
            sheet.run(operation)
            rate = round(rows / (_all_cpu() - before))
            if sheet.poll(operation).completed_count != rows:
                raise RuntimeError(f"cells of {title} failed")
            bench.report(
                f"{title} column, segment to committed segment, rows a second of CPU",
                rows=rows,
                rate=rate,
                yardstick_parquet_to_parquet=round(rows / bare),
                target=aim,
                met=None if bench.quick else rate >= aim,
            )
        _report_unchanged(bench, store, sheet)


def _report_unchanged(bench: Bench, store: Store, sheet: Sheet) -> None:
    """Visit every cell of five columns whose fingerprints say nothing: all is hashed, nothing computed."""
    titles = [f"same {at}" for at in range(5)]
    for title in titles:
        sheet.run(sheet.add(title, "comparison", sources=["text", "other"]).operation)
    columns = [sheet.column(title) for title in titles]
    with store.catalog.transaction() as connection:
        for column in columns:
            set_fingerprint(connection, column.no, "unknown")
    begun, begun_cpu = time.perf_counter(), _all_cpu()
    done = sheet.recalculate(statuses=(), column_ids=tuple(column.id for column in columns))
    seconds = time.perf_counter() - begun
    if done.cached_count != done.cell_count:
        raise RuntimeError("cells were computed that had not changed")
    bench.report(
        "five columns found unchanged, hashing forced",
        cells=done.cell_count,
        seconds=round(seconds, 2),
        cpu_seconds=round(_all_cpu() - begun_cpu, 2),
        target_seconds=UNCHANGED_S,
        met=None if bench.quick else seconds <= UNCHANGED_S,
    )


def _all_cpu() -> float:
    """CPU seconds of this process and of the workers that have ended: one ends with its operation."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _bare(folder: Path, held: Sequence[Sequence[Any]]) -> float:
    """Return the CPU seconds in which polars compares two columns of a file into another."""
    source = folder / "bare.parquet"
    pl.DataFrame({"text": [row[1] for row in held], "other": [row[2] for row in held]}).write_parquet(source)
    begun = time.process_time()
    pl.read_parquet(source).select(pl.col("text") == pl.col("other")).write_parquet(folder / "out.parquet")
    return time.process_time() - begun
