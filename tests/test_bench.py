"""The benchmarks' own parts: what they send is taken by the service, what they need is named."""

import csv
import os
import subprocess
import sys
from pathlib import Path

from api.schemas.request_logs import LOG_REQUEST
from tests.bench.material import log_body, small_csv, write_large_csv
from tests.bench.measure import summary


def test_a_missing_tool_is_named_and_ends_with_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--only", "ingest"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "`wrk` is missing" in done.stderr
    assert "apt-get install wrk" in done.stderr


def test_the_log_has_three_kilobytes_and_is_valid() -> None:
    body = log_body()
    assert abs(len(body) - 3_000) < 50
    LOG_REQUEST.validate_json(body)


def test_csv_files_have_the_rows_they_say_and_never_more_bytes_than_asked(tmp_path: Path) -> None:
    assert len(small_csv(10).splitlines()) == 11
    path = tmp_path / "large.csv"
    rows = write_large_csv(path, 1_000_000)
    assert 999_000 < path.stat().st_size <= 1_000_000
    with path.open(newline="") as file:
        found = list(csv.reader(file))
    assert len(found) == rows + 1
    assert {len(row) for row in found} == {8}


def test_a_series_is_told_by_its_percentiles() -> None:
    told = summary([float(n) for n in range(1, 102)])
    assert (told["n"], told["p50_ms"], told["p95_ms"], told["p99_ms"]) == (101, 51.0, 96.0, 100.0)
    assert summary([3.0])["p95_ms"] == 3.0
