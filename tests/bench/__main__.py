"""Run the benchmarks and print one JSON line each: `python -m tests.bench [--only NAME] [--quick]`.

Exit code 0: all ran. 1: one failed or missed its target with --strict. 2: a tool is missing.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import (
    batch,
    beside,
    columns,
    datasets,
    engines,
    folders,
    idle,
    import_file,
    ingest,
    lake,
    latency,
    models,
    search,
    sheets,
    start,
    sustained,
    templates,
    webhooks,
)
from tests.bench.measure import Bench, MissingTool, machine

BENCHES: dict[str, Callable[[Bench], None]] = {
    "start": start.run,
    "ingest": ingest.run,
    "sustained": sustained.run,
    "batch": batch.run,
    "latency": latency.run,
    "beside": beside.run,
    "import_file": import_file.run,
    "webhooks": webhooks.run,
    "templates": templates.run,
    "lake": lake.run,
    "search": search.run,
    "engines": engines.run,
    "folders": folders.run,
    "sheets": sheets.run,
    "columns": columns.run,
    "models": models.run,
    "datasets": datasets.run,
    "idle": idle.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", action="append", choices=sorted(BENCHES), help="run this one; may be repeated"
    )
    parser.add_argument(
        "--quick", action="store_true", help="seconds instead of minutes: a try-out, no figure"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument(
        "--keep", action="store_true", help="leave the home folders for a look, and name them"
    )
    arguments = parser.parse_args()
    _print({"bench": "machine", **machine()})
    failed = False
    for name in arguments.only or BENCHES:
        with _folder(keep=arguments.keep) as folder:
            bench = Bench(name, folder, quick=arguments.quick, show=_print)
            started = time.monotonic()
            try:
                BENCHES[name](bench)
            except MissingTool as missing:
                print(missing, file=sys.stderr)
                return 2
            except Exception as error:  # noqa: BLE001 - the next benchmark may still say something
                traceback.print_exc()
                _print({"bench": name, "failed": f"{type(error).__name__}: {error}"})
                failed = True
            _print({"bench": name, "took_s": round(time.monotonic() - started, 1)})
            failed = failed or (arguments.strict and bench.missed)
    return int(failed)


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="promptlake-bench-"))
    try:
        yield folder
    finally:
        if keep:
            print(f"kept {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _print(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
