"""Engines of computed columns: over a chunk of values beside the bare engine, and whole columns of a sheet.

Rates are rows a second of CPU time, of this process and of the sandbox worker together.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import UUID

import duckdb
import polars as pl
import psutil
from minijinja import Environment
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from pipelines.columns.score import Score
from pipelines.columns.templates import opened_renderer
from pipelines.columns.values import values_of
from storage.domain.blueprints import Text
from storage.domain.results import Chunk, Values
from storage.engine.sandbox.pool import Pool
from storage.sandbox import code_of
from tests.bench import whole_columns
from tests.bench.expressions import F_STRING, JAVASCRIPT, JINJA2, PYTHON, SQL
from tests.bench.measure import Bench

_IDS = (UUID(int=1), UUID(int=2))


@dataclass
class _Anybody:
    """A store and a caller, as far as engines look at them."""

    sandbox: Pool
    workspace_id: int = 1


def run(bench: Bench) -> None:
    """Measure every engine on columns of short texts and of numbers."""
    rows = bench.sized(200_000, 2_000)
    texts = [f"hello world how are you {number}" for number in range(rows)]
    columns = {"text": values_of(texts), "num": values_of(list(range(rows)))}
    pool = Pool()
    try:
        known = cast("Any", _Anybody(pool))
        bare = _bare(columns)
        for name, aim in (("PYTHON", 100_000), ("JAVASCRIPT", 30_000), ("SQL", 400_000)):
            _report(bench, name, aim, rows, _code(known, name, columns, rows), bare[name])
        for name, aim in (("jinja2", 150_000), ("f-string", 500_000)):
            _report(bench, name, aim, rows, _template(known, name, columns, rows), bare[name])
        for metric, (seconds, yard) in _scores(columns, rows).items():
            _report(bench, metric, 500_000, rows, seconds, yard)
    finally:
        pool.close()
    whole_columns.run(bench)


def _report(bench: Bench, name: str, aim: int, rows: int, seconds: float, bare: float) -> None:
    rate = round(rows / seconds)
    bench.report(
        f"{name}, rows a second of CPU",
        rows=rows,
        rate=rate,
        bare_rate=round(rows / bare),
        of_bare=round(bare / seconds, 2),
        target=aim,
        met=None if bench.quick else rate >= aim,
    )


def _cpu(work: Callable[[], Any], workers: Iterable[int] = ()) -> float:
    """Seconds of CPU that work takes here and in worker processes."""
    held = [psutil.Process(pid) for pid in workers]

    def used() -> float:
        theirs = (one.cpu_times() for one in held)
        return time.process_time() + sum(times.user + times.system for times in theirs)

    before = used()
    work()
    return max(1e-6, used() - before)


_CODE = {"PYTHON": PYTHON, "JAVASCRIPT": JAVASCRIPT, "SQL": SQL}


def _code(known: Any, language: str, columns: Mapping[str, Values], rows: int) -> float:
    with code_of(known, known, language).opened(_CODE[language]) as evaluation:
        pid = evaluation._ready().pid
        return _cpu(lambda: values_of(evaluation.evaluate(columns, rows).values), [pid])


def _template(known: Any, language: str, columns: Mapping[str, Values], rows: int) -> float:
    text = JINJA2 if language == "jinja2" else F_STRING
    with opened_renderer(known, known, [Text("text", text, language)]) as renderer:
        workers = [renderer._jinja2._ready().pid] if renderer._jinja2 else []
        return _cpu(lambda: renderer.render(columns, rows), workers)


def _scores(columns: Mapping[str, Values], rows: int) -> dict[str, tuple[float, float]]:
    """Seconds of a metric, and of the bare engine on the same values."""
    texts = columns["text"].series.to_list()
    other = [text.replace("hello", "hallo") if at % 2 else text for at, text in enumerate(texts)]
    pairs = {
        "levenshtein": (columns["text"], values_of(other)),
        "exact_match": (columns["text"], values_of(other)),
        "absolute_numeric_distance": (columns["num"], values_of([float(at) for at in range(rows)])),
        "weighted_mean": (columns["num"], columns["num"]),
    }
    yard: dict[str, Callable[[], Any]] = {
        "levenshtein": partial(
            process.cpdist, texts, other, scorer=Levenshtein.normalized_similarity, workers=1
        ),
        "exact_match": lambda: pl.Series(texts) == pl.Series(other),
        "absolute_numeric_distance": lambda: abs(columns["num"].series - columns["num"].series),
        "weighted_mean": lambda: (columns["num"].series + columns["num"].series) / 2,
    }
    return {
        metric: (_cpu(partial(_scored, metric, pairs[metric], rows)), _cpu(yard[metric])) for metric in pairs
    }


def _scored(metric: str, columns: Sequence[Values], rows: int) -> None:
    chunk = Chunk(range(rows), range(rows), dict(zip(_IDS, columns, strict=True)))
    list(Score({"metric": metric, "sources": [str(one) for one in _IDS]}).compute(chunk))


def _bare(columns: Mapping[str, Values]) -> dict[str, float]:
    """Seconds of each engine by itself, in this process, from and to what it likes best."""
    texts, numbers = (columns[name].series.to_list() for name in ("text", "num"))
    frame = pl.DataFrame({name: values.series for name, values in columns.items()})
    return {
        "PYTHON": _cpu(lambda: _bare_python(texts, numbers)),
        "JAVASCRIPT": _cpu(lambda: _bare_javascript(texts, numbers)),
        "SQL": _cpu(lambda: _bare_sql(frame)),
        "jinja2": _cpu(lambda: _bare_jinja2(texts, numbers)),
        "f-string": _cpu(lambda: frame.select(pl.format("Hello {}, {} of many", "text", "num"))),
    }


def _bare_python(texts: Sequence[str], numbers: Sequence[int]) -> list[Any]:
    found = []
    for text, number in zip(texts, numbers, strict=True):
        words = text.split()
        found.append({"n": len(words), "first": words[0].upper(), "x": number * 2})
    return found


def _bare_javascript(texts: Sequence[str], numbers: Sequence[int]) -> Any:
    from _quickjs import Context  # noqa: PLC0415  it is here for the yardstick alone

    each = f"(function(data) {{ {JAVASCRIPT} }})"
    run = Context().eval(
        f"(function(text) {{ const cell = {each}; return JSON.stringify(JSON.parse(text).map(cell)) }})"
    )
    rows = [{"text": text, "num": number} for text, number in zip(texts, numbers, strict=True)]
    return json.loads(run(json.dumps(rows)))


def _bare_sql(frame: pl.DataFrame) -> Any:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", frame.to_arrow())
        return connection.sql(f"SELECT {SQL} AS cell FROM rows").to_arrow_table()


def _bare_jinja2(texts: Sequence[str], numbers: Sequence[int]) -> list[str]:
    environment = Environment()
    environment.add_template("one", JINJA2)
    pairs = zip(texts, numbers, strict=True)
    return [environment.render_template("one", text=text, num=number) for text, number in pairs]
