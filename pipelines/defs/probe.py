"""A job that only waits or computes: it shows that runs start, and measures the way to one."""

import time

from dagster import Config, OpExecutionContext, in_process_executor, job, op

PROBE_JOB = "probe"


class ProbeConfig(Config):
    """How long to wait and to compute, in seconds."""

    wait_s: float = 0.0
    compute_s: float = 0.0


@op(name="probe_op")
def probe_op(context: OpExecutionContext, config: ProbeConfig) -> None:
    """Wait, then keep a core busy."""
    time.sleep(config.wait_s)
    until = time.monotonic() + config.compute_s
    while time.monotonic() < until:
        sum(range(10_000))
    context.log.info("The probe has run.")


@job(name=PROBE_JOB, executor_def=in_process_executor, tags={"lane": "short"})
def probe_job() -> None:
    """Do nothing, observably."""
    probe_op()
