"""A large CSV file written in several stretches at once, each by a thread of its own into files of its own.

Where the records of a later stretch begin is told by the quotes before it, which is right for a file that is
quoted as it should be and a guess for any other. So the reading in order decides: a stretch counts only if
what stands before it, read in order, ends exactly where the stretch began. A stretch stops at the first block
that is not regular. What no stretch has read is read in order, as a small file is.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise

import pyarrow as pa

from storage.engine.csv_blocks import Cut, first_record_end
from storage.engine.csv_import import CsvFile
from storage.engine.segment_sink import SegmentSink

Report = Callable[[int, int], None]
"""Called with the bytes and the rows read so far; may raise to stop."""

MIN_STRETCH_BYTES = 8 * 1024 * 1024
_MOST_STRETCHES = 4
_TELL_EVERY_S = 0.1
_SCAN_BYTES = 1 << 20


def count_stretches(file: CsvFile) -> int:
    """Return in how many stretches what is left of a file is worth reading on this machine."""
    return max(1, min(_MOST_STRETCHES, _cores(), (file.size - file.offset) // MIN_STRETCH_BYTES))


def write_stretches(file: CsvFile, sink: SegmentSink, count: int, report: Report) -> None:
    """Write the records of a file to a sink, two or more stretches of it side by side.

    Raises:
        ImportRefused: as reading the file in order does.
        Unavailable: the disk is full.
        What `report` raises. In each case only the sink still has files.
    """
    threads = ThreadPoolExecutor(count - 1, thread_name_prefix="stretch")
    stretches = _plan(file, sink, count, threads)
    try:
        for stretch in stretches:
            stretch.start(threads)
        for number, stretch in enumerate(stretches):
            told = _Told(file, sink, stretches[number:], report)
            _write_to(stretch.begin, told)
            if file.offset == stretch.begin.at:
                sink.publish()
                stretch.wait(told)
                sink.append(stretch.sink)
                stretch.taken = True
                file.skip_to(stretch.offset, stretch.sink.rows)
            else:
                stretch.stop()
        _write_to(Cut(file.size, file.size), _Told(file, sink, [], report))
    finally:
        for stretch in stretches:
            stretch.stop()
        threads.shutdown()
        for stretch in stretches:
            if not stretch.taken:
                stretch.sink.discard()


class Stretch:
    """The regular blocks between two places where a record seems to end, and a sink for their rows."""

    def __init__(self, file: CsvFile, sink: SegmentSink, begin: Cut, end: Cut) -> None:
        self.begin = begin
        self.sink = sink
        self.bytes = 0
        self.taken = False
        self._file = file
        self._end = end
        self._stopped = threading.Event()
        self._done: Future[None] | None = None

    @property
    def offset(self) -> int:
        """How far the stretch has been read."""
        return self.begin.at + self.bytes

    def start(self, threads: ThreadPoolExecutor) -> None:
        """Write the stretch on a thread."""
        self._done = threads.submit(self._write)

    def stop(self) -> None:
        """Let the thread end soon, and leave nothing if it has not ended yet."""
        self._stopped.set()

    def wait(self, tell: Callable[[], None]) -> None:
        """Wait until the stretch is written, and tell meanwhile; raise what ended it."""
        if self._done is None:
            raise RuntimeError("the stretch was not started")
        while not wait([self._done], _TELL_EVERY_S).done:
            tell()
        self._done.result()

    def _write(self) -> None:
        with self.sink:
            for table in self._tables():
                self.sink.write(table.num_rows, table.columns, ["text"] * table.num_columns)

    def _tables(self) -> Iterator[pa.Table]:
        while self.offset < self._end.near or self.offset < self._end.at:
            if self._stopped.is_set():
                raise _Stopped
            read = os.pread(self._file.fileno(), self._file.block_bytes, self.offset)
            block = self._end.block_of(read, self.offset)
            table = self._file.parser.parse(block)
            if table is None:
                return
            yield table
            self.bytes += len(block)


class _Stopped(Exception):
    """The stretch is not wanted any more."""


class _Told:
    """Tells how much of a file is read: in order, and by stretches that may still be taken."""

    def __init__(self, file: CsvFile, sink: SegmentSink, beside: list[Stretch], report: Report) -> None:
        self.file = file
        self.sink = sink
        self._beside = beside
        self._report = report

    def __call__(self) -> None:
        self._report(
            self.file.offset + sum(one.bytes for one in self._beside),
            self.sink.rows + sum(one.sink.rows for one in self._beside),
        )


def _write_to(cut: Cut, told: _Told) -> None:
    for table in told.file.read_to(cut):
        told.sink.write(table.num_rows, table.columns, ["text"] * table.num_columns)
        told()


def _plan(file: CsvFile, sink: SegmentSink, count: int, threads: ThreadPoolExecutor) -> list[Stretch]:
    """Lay out all stretches but the first, which is the reader's own; threads look for where they begin."""
    whole = file.size - file.offset
    near = [file.offset + whole * number // count for number in range(1, count)]
    cuts = [Cut(one, threads.submit(_find_cut, file, file.offset, one)) for one in near]
    cuts.append(Cut(file.size, file.size))
    return [Stretch(file, sink.beside(), begin, end) for begin, end in pairwise(cuts)]


def _find_cut(file: CsvFile, begin: int, near: int) -> int:
    """Return the first place from `near` on that has even quotes before it, back to where a record begins.

    The file's end if there is none in sight.
    """
    quotes = 0
    for at in range(begin, near, _SCAN_BYTES):
        quotes += os.pread(file.fileno(), min(_SCAN_BYTES, near - at), at).count(b'"')
    end = first_record_end(os.pread(file.fileno(), _SCAN_BYTES, near), quotes)
    return near + end if end else file.size


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
