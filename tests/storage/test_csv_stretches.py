"""A file written in several stretches at once holds what it holds when read in order, or says the same."""

import csv
import io
import os
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.domain.errors import Unavailable
from storage.domain.imports import ImportedSegment, ImportRefused
from storage.engine import csv_stretches
from storage.engine.csv_import import CsvFile
from storage.engine.csv_stretches import count_stretches, write_stretches
from storage.engine.data_root import DataRoot
from storage.engine.segment_sink import SegmentSink
from tests.storage.test_csv_import import files, read

SHEET = UUID(int=7)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot((tmp_path_factory.mktemp("stretches") / "data").as_uri())


def new_sink(data: DataRoot) -> SegmentSink:
    numbers = count(1)
    return SegmentSink(data, SHEET, lambda: UUID(int=next(numbers)))


def write(
    data: DataRoot, content: bytes, stretches: int, block_bytes: int, report: Any = lambda _bytes, _rows: None
) -> tuple[SegmentSink, list[list[str]]]:
    """Write a file in stretches and read its rows back in order; nothing stays in the folder."""
    path = data.path("upload")
    path.write_bytes(content)
    with path.open("rb") as handle:
        file = CsvFile(handle, 0, block_bytes)
        with new_sink(data) as sink:
            write_stretches(file, sink, stretches, report)
    rows = [row for one in sorted(sink.segments, key=first_row) for row in rows_of(data, one)]
    assert [one.first_row for one in sorted(sink.segments, key=first_row)] == starts(sink.segments)
    assert sum(one.rows for one in sink.segments) == sink.rows == len(rows)
    assert len(files_of(data)) == len(sink.segments)
    sink.discard()
    assert files_of(data) == []
    return sink, rows


def first_row(segment: ImportedSegment) -> int:
    return segment.first_row


def starts(segments: list[ImportedSegment]) -> list[int]:
    found, at = [], 0
    for one in sorted(segments, key=first_row):
        found.append(at)
        at += one.rows
    return found


def rows_of(data: DataRoot, segment: ImportedSegment) -> list[list[str]]:
    columns = [column.to_pylist() for column in pq.read_table(data.path(segment.key)).columns]
    return [list(row) for row in zip(*columns, strict=True)]


def files_of(data: DataRoot) -> list[str]:
    return data.files("sheets", before_epoch_s=1e12)


def check(data: DataRoot, text: str, stretches: int, block_bytes: int) -> None:
    in_order = outcome(lambda: read(text.encode())[1])
    assert outcome(lambda: write(data, text.encode(), stretches, block_bytes)[1]) == in_order
    assert files_of(data) == []


def outcome(reading: Callable[[], list[list[str]]]) -> list[list[str]] | str:
    try:
        return reading()
    except ImportRefused as refusal:
        return refusal.message


@given(text=files, stretches=st.integers(2, 4), block_bytes=st.integers(4, 60))
@settings(max_examples=100)
def test_files_of_fields_are_written_as_they_are_read(
    data: DataRoot, text: str, stretches: int, block_bytes: int
) -> None:
    check(data, text, stretches, block_bytes)


@given(
    text=st.text('ab",\n\r', min_size=8, max_size=40),
    stretches=st.integers(2, 4),
    block_bytes=st.integers(2, 30),
)
@settings(max_examples=100)
@example('"\n"\n"\n"\n"\n"\n"', 2, 4)
@example('5" a\nb\n"c\nd"\ne,f\n"g\nh"\n', 3, 6)
def test_any_text_is_written_as_it_is_read(
    data: DataRoot, text: str, stretches: int, block_bytes: int
) -> None:
    check(data, "h,i\n" + text, stretches, block_bytes)
    check(data, "h\n" + text, stretches, block_bytes)


def regular(rows: int) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([["a", "b"], *([f"{n}", f'value "{n}",\nand more'] for n in range(rows))])
    return text.getvalue().encode()


def test_each_stretch_of_a_regular_file_has_a_segment_of_its_own(data: DataRoot) -> None:
    content = regular(3_000)
    told: list[tuple[int, int]] = []
    sink, rows = write(data, content, 3, 4096, lambda *so_far: told.append(so_far))
    assert rows == read(content)[1]
    assert len(sink.segments) == 3
    assert min(one.rows for one in sink.segments) > 900
    assert told == sorted(told, key=lambda one: one[1])
    assert told[-1][0] <= len(content)


def test_a_quote_within_a_value_costs_time_and_no_row(data: DataRoot) -> None:
    # an odd quote before the middle: every later guess is wrong
    content = regular(500) + b'7,5" pipe\n' + regular(800).split(b"\n", 1)[1]
    sink, rows = write(data, content, 2, 4096)
    assert rows == read(content)[1]
    assert len(sink.segments) == 1


def test_what_a_stretch_cannot_take_is_read_in_order_behind_it(data: DataRoot) -> None:
    body = regular(1_000).split(b"\n", 1)[1]
    content = b"a,b\n" + body + body + b"short\n" + body
    sink, rows = write(data, content, 2, 4096)
    assert rows == read(content)[1]
    assert rows[2_000] == ["short", ""]
    assert len(sink.segments) == 3


def test_a_refusal_in_a_later_stretch_names_its_record_and_line(data: DataRoot) -> None:
    body = b'1,"x\ny"\n' * 2_000
    with pytest.raises(ImportRefused) as refused:
        write(data, b"a,b\n" + body + b"1,2,3\n" + body, 4, 512)
    assert refused.value.message == "Record 2001 (line 4002) has 3 values, but the header has 2 columns"
    assert files_of(data) == []


def test_whoever_stops_the_reading_leaves_no_thread_and_no_file(data: DataRoot) -> None:
    def stop(_bytes: int, rows: int) -> None:
        if rows > 1_000:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        write(data, regular(20_000), 4, 4096, stop)
    assert threading.active_count() == before
    assert files_of(data) == []


@pytest.mark.parametrize("failing", range(6))
def test_a_full_disk_in_any_stretch_ends_the_writing(
    data: DataRoot, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls = count()
    whole = os.fsync

    def sync(handle: int) -> None:
        # each segment is a file and its folder
        if next(calls) == failing:
            raise OSError(28, "No space left on device")
        whole(handle)

    monkeypatch.setattr(os, "fsync", sync)
    before = threading.active_count()
    with pytest.raises(Unavailable):
        write(data, regular(3_000), 3, 4096)
    assert threading.active_count() == before
    assert files_of(data) == []


def test_small_files_are_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_stretches, "_cores", lambda: 3)
    monkeypatch.setattr(csv_stretches, "MIN_STRETCH_BYTES", 100)

    def count_of(rows: int) -> int:
        return count_stretches(CsvFile(io.BytesIO(b"a\n" + b"x\n" * rows), 0, 50))

    assert [count_of(rows) for rows in (1, 99, 100, 149, 150, 10_000)] == [1, 1, 2, 2, 3, 3]


def test_a_header_alone_makes_no_rows_in_any_number_of_stretches(data: DataRoot) -> None:
    for content in (b"a,b\n", b"a,b", b"a,b\n\n\n\n\n\n\n"):
        assert write(data, content, 3, 4)[1] == []


def test_it_is_one_import_to_whoever_reads_it(tmp_path: Path) -> None:
    data = DataRoot((tmp_path / "data").as_uri())
    content = b"n\n" + b"".join(b"%d\n" % n for n in range(20_000))
    sink, rows = write(data, content, 4, 4096)
    assert rows == [[str(n)] for n in range(20_000)]
    assert len(sink.segments) == 4
