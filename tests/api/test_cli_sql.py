"""`promptlake sql`: exact answers over what is flushed and what is not, as table, CSV and Parquet."""

import csv
import io
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from api.cli import main
from storage.domain.request_logs import Score
from storage.log_flush import flush_logs
from storage.settings import Settings
from storage.store import Store
from storage.workspaces import create_workspace
from tests.logs import add_logs


@pytest.fixture
def filled(store: Store) -> Store:
    """Two flushed logs and one in the tail of `default`, one flushed log of `other`."""
    add_logs(store, 2, model="old", score=Score("tone", 1))
    create_workspace(store, "other")
    add_logs(store, 1, workspace_id=2, model="foreign")
    flush_logs(store)
    add_logs(store, 1, model="new", score=Score("tone", 5), metadata={"k": "a,b\nc"})
    return store


def sql(store: Store, *arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["sql", "--home", str(store.settings.root), *arguments], input=text)


def rows(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return list(csv.reader(io.StringIO(result.stdout)))


def test_an_answer_counts_flushed_and_unflushed_logs_once(filled: Store) -> None:
    query = "SELECT id, model FROM request_logs ORDER BY id"
    expected = [["id", "model"], ["1", "old"], ["2", "old"], ["4", "new"]]
    assert rows(sql(filled, "--format", "csv", query)) == expected
    flush_logs(filled)
    assert rows(sql(filled, "--format", "csv", query)) == expected
    as_of = rows(sql(filled, "--format", "csv", "SELECT last_id, rows FROM request_logs_as_of"))
    assert as_of == [["last_id", "rows"], ["4", "3"]]


def test_scores_are_exact_before_they_are_flushed(filled: Store) -> None:
    query = "SELECT request_id, score FROM scores ORDER BY 1"
    assert rows(sql(filled, "--format", "csv", query))[1:] == [["1", "1"], ["2", "1"], ["4", "5"]]


def test_a_workspace_sees_its_own_logs(filled: Store) -> None:
    query = "SELECT model FROM request_logs"
    assert rows(sql(filled, "--workspace", "other", "--format", "csv", query))[1:] == [["foreign"]]
    unknown = sql(filled, "--workspace", "nowhere", query)
    assert (unknown.exit_code, unknown.output) == (1, "Error: No workspace is named nowhere\n")


def test_a_query_may_begin_with_a_comment(filled: Store) -> None:
    query = "-- how many\nSELECT count(*) FROM request_logs"
    assert rows(sql(filled, "--format", "csv", query))[1] == ["3"]
    assert sql(filled, "--no-such-option").exit_code == 2


def test_a_table_is_printed_by_default(filled: Store) -> None:
    result = sql(filled, "FROM request_logs SELECT count(*) AS logs")
    assert result.exit_code == 0
    assert "logs" in result.output
    assert "│" in result.output


def test_files_are_written_by_their_name(filled: Store, tmp_path: Path) -> None:
    query = "SELECT id, metadata FROM request_logs ORDER BY id"
    table, text = tmp_path / "x.parquet", tmp_path / "x.csv"
    assert sql(filled, "--output", str(table), query).exit_code == 0
    found = duckdb.connect().execute("SELECT metadata['k'] FROM read_parquet(?)", [str(table)]).fetchall()
    assert found[-1] == ("a,b\nc",)
    assert sql(filled, "--output", str(text), query).exit_code == 0
    assert len(list(csv.reader(io.StringIO(text.read_text())))) == 4


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELEC 1", "Parser Error"),
        ("SELECT nothing FROM request_logs", "nothing"),
        ("", "no query"),
        ("COPY (SELECT 1) TO 'x.csv'", "Only statements that read"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'", "Only statements that read"),
        ("/* x */ EXPLAIN (ANALYZE) COPY (SELECT 1) TO 'x.csv'", "Only statements that read"),
        ("ATTACH 'x.duckdb'", "Only statements that read"),
        ("CREATE TABLE x AS SELECT 1", "Only statements that read"),
        ("SELECT 1; DROP VIEW request_logs", "Only statements that read"),
    ],
)
def test_what_is_wrong_or_writes_ends_with_a_sentence_and_1(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = sql(filled, query)
    assert result.exit_code == 1
    assert says in result.output
    assert "Traceback" not in result.output
    assert sorted(tmp_path.iterdir()) == before


def test_output_and_format_must_fit(filled: Store, tmp_path: Path) -> None:
    for arguments in (["--format", "parquet"], ["--format", "table", "--output", str(tmp_path / "x")]):
        assert sql(filled, *arguments, "SELECT 1").exit_code == 2
    unwritable = sql(filled, "--output", str(tmp_path / "no" / "x.csv"), "SELECT 1")
    assert (unwritable.exit_code, "cannot be written" in unwritable.output) == (1, True)


def test_a_script_on_standard_input_runs_statement_by_statement(filled: Store) -> None:
    result = sql(
        filled, "--format", "csv", text="SELECT 1 AS a;\n-- twice\nEXPLAIN SELECT 1; SELECT 'é;' AS b;"
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("a\n1\n")
    assert result.stdout.endswith("b\né;\n")


def test_the_prompt_reads_up_to_the_semicolon_and_survives_errors(filled: Store, settings: Settings) -> None:
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "api.cli", "sql", "--home", str(settings.root)],
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    os.write(parent, b"SELECT count(*)\nAS logs FROM\nrequest_logs;\nSELEC 1;\nSELECT 40 + 2;\n.quit\n")
    output = ""
    with suppress(OSError):  # Linux ends a terminal whose other side is closed with an error
        while chunk := os.read(parent, 65536):
            output += chunk.decode()
    process.wait(60)
    os.close(parent)
    assert process.returncode == 0, output
    assert "logs" in output
    assert "Parser Error" in output
    assert "42" in output
    assert "SELECT 40 + 2;" in (settings.root / "sql_history").read_text()
