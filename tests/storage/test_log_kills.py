"""A process that flushes and compacts is killed again and again: each answered log is there, once."""

import random
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from storage.domain.request_logs import LogFilter
from storage.log_compaction import compact_logs
from storage.log_flush import find_segment_faults, flush_logs
from storage.request_logs import scan_request_logs
from storage.store import Store

_WORK = """
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from storage.domain import log_compaction
from storage.log_compaction import compact_logs
from storage.log_flush import flush_logs
from storage.settings import Settings
from storage.store import open_store
from tests.logs import add_logs
log_compaction.MERGE_FILES = 3
store = open_store(Settings(home=Path(sys.argv[1])))
# the leases of those that were killed before have run out
store = replace(store, now=lambda now=store.now: now() + timedelta(minutes=2 * int(sys.argv[2])))
print("ready", flush=True)
while True:
    print(add_logs(store, 50)[-1], flush=True)
    flush_logs(store)
    compact_logs(store)
"""


@pytest.mark.slow
def test_a_killed_flush_or_compaction_loses_and_doubles_nothing(store: Store) -> None:
    random.seed(7)
    root = Path(__file__).parents[2]
    for turn in range(1, 9):
        command = [sys.executable, "-c", _WORK, str(store.settings.root), str(turn)]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(random.uniform(0.2, 1.5))
            process.kill()
            answered = [int(line) for line in process.stdout.read().splitlines() if line.endswith("0")]
        batches = scan_request_logs(store, 1, LogFilter(newest_first=False), batch_rows=500)
        ids = [log_id for batch in batches for log_id in batch.column("id").to_pylist()]
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) >= max(answered, default=0)
        assert find_segment_faults(store) == {}
    now = store.now
    late = replace(store, now=lambda: now() + timedelta(days=2))
    flush_logs(late)
    compact_logs(late)
    assert find_segment_faults(store) == {}
