"""The keys of providers are in the environment of the service and nowhere in what it keeps."""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.bench.imports import wait as wait_import
from tests.bench.material import file_source
from tests.bench.service import Service, running
from tests.model_server import ModelServer
from tests.stack import wait_for

SECRET = "keyofaproviderthatnobodymayread"
TABLES = "/api/public/v2/tables"
# answered, refused, refused with the key in the answer, cut off, broken
MARKS = ("plain", "{401}", "{echo}", "{echo500}", "{cut}", "{500}")


def computed(service: Service, sheet: str, title: str, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    made = service.post(f"{sheet}/columns", {"title": title, "type": kind, "config": config})
    path = f"{sheet}/operations/{made['operation_id']}"
    wait_for(lambda: service.get(path)["operation"]["status"] == "completed", 120, f"{title} computed")
    return dict(service.get(path)["operation"])


def kept(home: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all that lies in the files of a home: as it lies there, and unpacked where it is packed."""
    for path in home.rglob("*"):
        if not path.is_file():
            continue
        content = path.read_bytes()
        yield str(path), content
        if path.suffix == ".parquet":
            yield str(path), str(pq.read_table(path).to_pylist()).encode()
        if content.startswith(b"SQLite format 3"):
            yield from ((f"{path} {table}", value) for table, value in values_of(path))


def values_of(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    yield table, value if isinstance(value, bytes) else str(value).encode()
                    if isinstance(value, bytes):
                        with suppress(zlib.error):
                            yield table, zlib.decompress(value)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_key_of_a_provider_is_kept_anywhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with ModelServer() as server:
        env = {
            "OPENAI_API_KEY": SECRET,
            "OPENAI_BASE_URL": server.url,
            "ODD_API_KEY": SECRET,
            "PROMPTLAKE_PROVIDERS": "odd=http://127.0.0.1:9/v1",
            "PROMPTLAKE_FLUSH_AFTER_S": "1",
            "PROMPTLAKE_LOG_LEVEL": "DEBUG",
        }
        with running(home, env=env) as service:
            table = service.post(TABLES, {"title": "keys"})["table"]["id"]
            text = "\n".join(("Q", *MARKS)).encode()
            made = service.post(f"{TABLES}/{table}/sheets", file_source("q.csv", text), status=202)
            wait_import(service, table, made["operation_id"])
            sheet = f"{TABLES}/{table}/sheets/{made['sheet']['id']}"
            asked = {"prompt": "{Q}", "engine": {"provider": "openai", "model": "gpt-4o-mini"}}
            done = computed(service, sheet, "asked", "llm", asked)
            assert (done["completed_count"], done["failed_count"]) == (1, len(MARKS) - 1)
            assert all(one["authorization"] == f"Bearer {SECRET}" for one in server.headers)
            odd = {"prompt": "{Q}", "engine": {"provider": "odd", "model": "m"}}
            assert computed(service, sheet, "odd", "llm", odd)["failed_count"] == len(MARKS)
            code = {"code": "import os\nreturn dict(os.environ)"}
            assert computed(service, sheet, "environment", "code", code)["completed_count"] == len(MARKS)
            wait_for(lambda: list((home / "data" / "logs").rglob("*.parquet")), 60, "logs flushed")
    found = [*kept(home), ("up.log", (tmp_path / "up.log").read_bytes())]
    # the search does find what is there, packed or not
    assert any(b"gpt-4o-mini" in content for _, content in found)
    assert [where for where, content in found if SECRET.encode() in content] == []
