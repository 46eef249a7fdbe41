"""Writes batches of logs with their scores as Parquet, CSV or JSON lines."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from storage.domain.log_columns import LOG_COLUMNS
from storage.domain.request_logs import iso_us, to_us
from storage.engine.csv_lines import CsvLines
from storage.engine.log_sql import duck, empty

Format = Literal["parquet", "csv", "jsonl"]
Scores = Mapping[int, Mapping[str, int]]
_JSON = ("parameters", "prompt_input_variables", "input", "output")
_SCORES = pa.field("scores", pa.map_(pa.string(), pa.int64()))


class LogSink(Protocol):
    """Takes batches of the promised columns and the scores of their logs."""

    def write(self, batch: pa.RecordBatch, scores: Scores) -> None: ...


class _ParquetSink:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch, scores: Scores) -> None:
        held = [list(scores.get(log_id, {}).items()) for log_id in batch.column("id").to_pylist()]
        table = pa.Table.from_batches([batch]).append_column(_SCORES, pa.array(held, _SCORES.type))
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is None:  # no log at all: the columns are told nevertheless
            with duck(threads=1) as connection:
                nothing = connection.sql(empty(LOG_COLUMNS)).to_arrow_table()
            self.write(pa.RecordBatch.from_pylist([], schema=nothing.schema), {})
        if self._writer is not None:
            self._writer.close()


class _JsonLines:
    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, batch: pa.RecordBatch, scores: Scores) -> None:
        for row in batch.to_pylist():
            said = {
                name: json.loads(value) if name in _JSON else _plain(value) for name, value in row.items()
            }
            said["metadata"] = dict(row["metadata"] or ())
            said["scores"] = dict(scores.get(row["id"], {}))
            self._file.write(json.dumps(said, ensure_ascii=False) + "\n")


class _Csv:
    def __init__(self, file: IO[str], names: list[str]) -> None:
        self._file = file
        self._lines = CsvLines()
        file.write(self._lines.line([*names, "scores"]))

    def write(self, batch: pa.RecordBatch, scores: Scores) -> None:
        for row in batch.to_pylist():
            said = {name: _plain(value) for name, value in row.items()}
            said["tags"] = _json(row["tags"])
            said["metadata"] = _json(dict(row["metadata"] or ()))
            own = _json(dict(scores.get(row["id"], {})))
            self._file.write(self._lines.line([*said.values(), own]))


def _plain(value: Any) -> Any:
    return iso_us(to_us(value)) if isinstance(value, datetime) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def log_sink(kind: Format, output: Path | IO[str]) -> Iterator[LogSink]:
    """Open a sink on a file, or for text on a stream.

    Raises:
        OSError: the file cannot be written.
    """
    if isinstance(output, Path) and kind == "parquet":
        parquet = _ParquetSink(output)
        try:
            yield parquet
        finally:
            parquet.close()
    elif isinstance(output, Path):
        with output.open("w", encoding="utf-8", newline="") as file:
            yield _text_sink(kind, file)
    else:
        yield _text_sink(kind, output)


def _text_sink(kind: Format, file: IO[str]) -> LogSink:
    return _Csv(file, [column.name for column in LOG_COLUMNS]) if kind == "csv" else _JsonLines(file)
