"""wrk, the HTTP load generator: one fixed body at a fixed number of connections for a fixed time."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import tool

_SCRIPT = """
local file = io.open("{body}", "rb")
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()
wrk.headers["Content-Type"] = "application/json"
wrk.headers["X-API-KEY"] = "{key}"
function done(summary, latency, requests)
  io.write(string.format(
    'JSON {{"requests": %d, "duration_us": %d, "p50_us": %d, "p95_us": %d, "p99_us": %d, "max_us": %d, ' ..
    '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95),
    latency:percentile(99), latency.max, summary.errors.connect, summary.errors.read,
    summary.errors.write, summary.errors.status, summary.errors.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of wrk saw; `errors` counts refused, broken, late and non-2xx answers."""

    requests: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    errors: int


def load(folder: Path, url: str, body: bytes, key: str, *, connections: int, seconds: int) -> Load:
    """POST the body to the URL as often as it is answered.

    Raises:
        MissingTool: wrk is not installed.
    """
    program = tool("wrk", "wrk")
    (folder / "body.json").write_bytes(body)
    script = folder / "post.lua"
    script.write_text(_SCRIPT.format(body=folder / "body.json", key=key))
    command = [
        program,
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "10s",
        "-s",
        str(script),
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("JSON "))
    seen = json.loads(line.removeprefix("JSON "))
    return Load(
        requests=seen["requests"],
        per_second=round(seen["requests"] / (seen["duration_us"] / 1e6), 1),
        p50_ms=seen["p50_us"] / 1000,
        p95_ms=seen["p95_us"] / 1000,
        p99_ms=seen["p99_us"] / 1000,
        max_ms=seen["max_us"] / 1000,
        errors=sum(seen[kind] for kind in ("connect", "read", "write", "status", "timeout")),
    )
