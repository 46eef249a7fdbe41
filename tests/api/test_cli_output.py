"""Files of commands: whole under their names or not at all, whatever ends the command."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import storage.log_export
from api.cli import main
from api.cli_output import written_whole
from storage.settings import Settings
from storage.store import Store
from tests.logs import add_logs


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """SIGINT means Ctrl-C also where tests run in processes that ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def write_half(output: Path, end: type[BaseException]) -> None:
    with written_whole(output) as part:
        part.write_text("half")
        raise end


def test_a_file_takes_its_name_when_it_is_whole(tmp_path: Path) -> None:
    output = tmp_path / "a.csv"
    output.write_text("before")
    with written_whole(output) as part:
        part.write_text("after")
        assert output.read_text() == "before"
    assert output.read_text() == "after"
    assert names_in(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("end", [OSError, KeyboardInterrupt])
def test_what_ends_early_leaves_what_was_there(tmp_path: Path, end: type[BaseException]) -> None:
    output = tmp_path / "a.csv"
    for before in ([], ["a.csv"]):
        with pytest.raises(end):
            write_half(output, end)
        assert names_in(tmp_path) == before
        output.write_text("before")
    assert output.read_text() == "before"


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    link.symlink_to(real)
    with written_whole(link) as part:
        part.write_text("x")
    assert (link.is_symlink(), real.read_text()) == (True, "x")
    with written_whole(Path("/dev/null")) as part:
        assert part == Path("/dev/null")


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_an_export_that_is_broken_off_leaves_no_half_file(
    store: Store, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    add_logs(store, 3)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage.log_export, "select_scores_of_many", interrupted)
    folder = tmp_path / "out"
    folder.mkdir()
    arguments = ["export", "request-logs", "--home", str(settings.root), "--output", f"{folder}/logs.{kind}"]
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stderr.strip()) == (1, "Aborted!")
    assert names_in(folder) == []


def test_ctrl_c_ends_a_long_query(store: Store, settings: Settings, ctrl_c: None) -> None:
    query = "SELECT count(*) FROM range(100_000_000_000) a WHERE hash(a.range) = 1"
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    done = CliRunner().invoke(main, ["sql", "--home", str(settings.root), query])
    assert (done.exit_code, done.stderr.strip()) == (1, "Aborted!")
