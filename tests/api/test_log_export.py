"""`promptlake export request-logs`: whole logs, flushed or not, in three formats."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from api.cli import main
from storage.domain.log_columns import LOG_COLUMNS
from storage.domain.request_logs import Score
from storage.log_deletion import delete_log
from storage.log_flush import flush_logs
from storage.settings import Settings
from storage.store import Store
from storage.tracking import track_metadata
from storage.workspaces import find_key
from tests.conftest import KEY
from tests.logs import add_logs, chat

ADA = {"filters": [{"field": "metadata", "operator": "key_equals", "nested_key": "user", "value": "ada"}]}
NAMES = [column.name for column in LOG_COLUMNS] + ["scores"]


@pytest.fixture
def filled(store: Store) -> Store:
    facts = find_key(store, KEY)
    assert facts is not None
    who = facts.principal
    add_logs(store, 3, score=Score("tone", 7), metadata={"user": "ada"}, tags=["a", "=b"])
    flush_logs(store)
    add_logs(store, 2, output=chat("assistant", 'Ωµ "quoted",\nnew line'), metadata={"user": "bob"})
    track_metadata(store, who, 5, {"user": "ada"})
    delete_log(store, who, 2)
    return store


def exported(settings: Settings, *arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["export", *arguments, "--home", str(settings.home)])
    return result.exit_code, result.stdout, result.stderr


def test_lines_of_json_hold_whole_logs_with_their_scores(filled: Store, settings: Settings) -> None:
    code, out, told = exported(settings, "request-logs")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, [line["id"] for line in lines]) == (0, [1, 3, 4, 5])
    assert "4 logs exported" in told
    assert list(lines[0]) == NAMES
    assert lines[0]["scores"] == {"tone": 7}
    assert lines[0]["input"]["messages"][0]["role"] == "user"
    assert lines[0]["request_start_time"] == "2024-05-01T10:00:00Z"
    assert lines[3]["metadata"] == {"user": "ada"}
    assert lines[3]["output"]["messages"][0]["content"][0]["text"] == 'Ωµ "quoted",\nnew line'


def test_a_filter_chooses_and_the_name_of_the_file_says_the_format(
    filled: Store, settings: Settings, tmp_path: Path
) -> None:
    read: dict[str, Any] = {
        "parquet": lambda path: pq.read_table(path).to_pylist(),
        "csv": lambda path: list(csv.DictReader(io.StringIO(path.read_text(), newline=""))),
        "jsonl": lambda path: [json.loads(line) for line in path.read_text().splitlines()],
    }
    for suffix, rows_of in read.items():
        path = tmp_path / f"logs.{suffix}"
        code, out, told = exported(
            settings, "request-logs", "--filter", json.dumps(ADA), "--output", str(path)
        )
        assert (code, out) == (0, ""), told
        rows = rows_of(path)
        assert [int(row["id"]) for row in rows] == [1, 3, 5]
        assert list(rows[0]) == NAMES
    (first, *_) = read["csv"](tmp_path / "logs.csv")
    assert json.loads(first["tags"]) == ["a", "=b"]
    assert json.loads(first["scores"]) == {"tone": 7}
    assert dict(read["parquet"](tmp_path / "logs.parquet")[0]["scores"]) == {"tone": 7}


def test_no_log_is_an_empty_file_with_columns(settings: Settings, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    assert exported(settings, "request-logs", "--output", str(path))[0] == 0
    assert pq.read_schema(path).names == NAMES
    assert exported(settings, "request-logs", "--format", "csv")[1] == ",".join(NAMES) + "\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["request-logs", "--format", "parquet"], 2, "Parquet needs a file"),
        (["request-logs", "--filter", "{"], 2, "--filter is no JSON"),
        (["request-logs", "--filter", '{"filters": [{"field": "x"}]}'], 2, "--filter"),
        (["request-logs", "--workspace", "nobody"], 1, "No workspace is named nobody"),
        (["request-logs", "--output", "/nowhere/logs.csv"], 1, "cannot be written"),
        (["nonsense"], 2, "request-logs"),
    ],
)
def test_bad_calls_are_told_in_a_sentence(
    settings: Settings, store: Store, arguments: list[str], code: int, sentence: str
) -> None:
    found, _, told = exported(settings, *arguments)
    assert (found, sentence in told) == (code, True), told
