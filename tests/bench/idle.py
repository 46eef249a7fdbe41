"""Memory of all processes and CPU of an idle service, beside one interpreter that has imported dagster."""

import subprocess
import time

from tests.bench.measure import MB, Bench, cpu_seconds, pss_bytes, python, role, tree
from tests.bench.service import running

MEMORY_TARGET_MB, CPU_TARGET_PERCENT = 900, 3.0


def run(bench: Bench) -> None:
    with running(bench.folder / "home") as service:
        time.sleep(bench.sized(60, 10))
        before, begun = cpu_seconds(service.pid), time.monotonic()
        time.sleep(bench.sized(60, 10))
        passed, after = time.monotonic() - begun, cpu_seconds(service.pid)
        percent = {name: (after[name] - before.get(name, 0.0)) / passed * 100 for name in after}
        by_role: dict[str, float] = {}
        for process in tree(service.pid):
            name = role(process)
            by_role[name] = by_role.get(name, 0) + pss_bytes(process.pid) / MB
    total, used = sum(by_role.values()), sum(percent.values())
    bench.report(
        "idle memory (PSS of all) and CPU",
        pss_mb=round(total),
        pss_mb_by_role={name: round(size) for name, size in sorted(by_role.items())},
        cpu_percent_of_a_core=round(used, 2),
        cpu_percent_by_role={name: round(part, 2) for name, part in sorted(percent.items())},
        target_pss_mb=MEMORY_TARGET_MB,
        target_cpu_percent=CPU_TARGET_PERCENT,
        yardstick_import_dagster_mb=round(_dagster_alone() / MB),
        met=total <= MEMORY_TARGET_MB and used <= CPU_TARGET_PERCENT,
    )


def _dagster_alone() -> int:
    code = "import dagster, sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen([python(), "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        size = pss_bytes(process.pid)
        process.communicate()
    return size
