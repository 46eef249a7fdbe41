"""From an event to its webhook: the answer to a publication to the arrival; beside it a direct POST."""

import time

import httpx2

from tests.bench.measure import Bench, summary
from tests.bench.service import Service, running
from tests.told import Told, telling

MAX_TARGET_MS = 1000
_APART_S = 0.13
_WAIT_S = 30.0


def run(bench: Bench) -> None:
    allowed = {"PROMPTLAKE_WEBHOOK_ALLOW": "127.0.0.0/8"}
    with running(bench.folder / "home", env=allowed) as service, telling() as told:
        hook = {"url": told.url, "event_types": ["prompt_template_version_created"]}
        service.post("/api/public/v2/webhooks", hook)
        paced = measure(service, told, bench.sized(100, 10), apart_s=_APART_S)
        burst = measure(service, told, bench.sized(200, 20), apart_s=0.0)
        direct = yardstick(told, bench.sized(100, 10))
    for what, figures in (("paced", paced), ("as fast as they are published", burst)):
        bench.report(
            f"event to webhook, {what}",
            **summary(figures),
            target_max_ms=MAX_TARGET_MS,
            yardstick_direct_post=summary(direct),
            met=max(figures) <= MAX_TARGET_MS,
        )


def measure(service: Service, told: Told, n: int, *, apart_s: float) -> list[float]:
    """Publish `n` prompts one after another; return milliseconds from each answer to its arrival."""
    before = len(told.arrivals)
    answered = {}
    for number in range(n):
        name = f"p{before + number}"
        answered[name] = publish(service, name)
        time.sleep(apart_s)
    deadline = time.monotonic() + _WAIT_S
    while len(told.at) < before + n:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{before + n - len(told.at)} events did not arrive")
        time.sleep(0.02)
    arrived = {
        str(arrival.event["details"]["prompt_template_name"]): at
        for arrival, at in zip(told.arrivals, told.at, strict=True)
    }
    return [(arrived[name] - at) * 1000 for name, at in answered.items()]


def publish(service: Service, name: str) -> float:
    blueprint = {"type": "completion", "content": [{"type": "text", "text": "Say {x}"}]}
    body = {"prompt_template": {"prompt_name": name}, "prompt_version": {"prompt_template": blueprint}}
    service.post("/rest/prompt-templates", body)
    return time.monotonic()


def yardstick(told: Told, n: int) -> list[float]:
    """Post the same body to the same receiver, a connection each; return milliseconds to the answer."""
    body = told.arrivals[-1].body
    times = []
    for _ in range(n):
        started = time.perf_counter()
        httpx2.post(told.url, content=body, trust_env=False)
        times.append((time.perf_counter() - started) * 1000)
    return times
