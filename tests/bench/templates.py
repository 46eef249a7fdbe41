"""The registry at 10,000 prompts of 20 versions: renders by label at 50 a second, and publications.

The yardstick of renders is the bare route of the ingest benchmark, asked in turns at the same pace.
"""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from storage.engine.schema import prompt_labels, prompt_versions, prompts
from storage.settings import Settings
from storage.store import open_store
from storage.workspaces import bootstrap
from tests.bench.bare import bare_server
from tests.bench.material import log_body, sentence
from tests.bench.measure import Bench, cpu_seconds, fdatasync_ms, summary
from tests.bench.service import KEY, Service, running

RENDER_P50_MS, RENDER_P95_MS, PUBLISH_P95_MS = 5.0, 15.0, 30.0
_PACE_S = 1 / 50
_TURN = 50
_TIMER_S = 0.0005  # a sleep that ends so late is no queue
_VERSIONS = 20
_KINDS = ("f-string", "jinja2", "f-string with snippets")
_SNIPPETS = ("tone", "rules")
_VALUES = {"who": "Ada", "question": "How many pages has the ledger?", "language": "English", "limit": 80}


def run(bench: Bench) -> None:
    home = bench.folder / "home"
    count = bench.sized(10_000, 300)
    seed(home, count)
    with running(home) as service, bare_server() as url, httpx2.Client(timeout=10) as bare:
        publish_snippets(service)
        time.sleep(bench.sized(10, 0))  # the other processes of a start have settled
        body = log_body()
        for kind in _KINDS:
            report_renders(bench, service, kind, count, lambda: bare.post(url, content=body))
        report_publications(bench, service, bench.sized(200, 10))


def report_renders(bench: Bench, service: Service, kind: str, count: int, bare: Callable[[], object]) -> None:
    """Render prompts of one kind, picked anew each time, so that most are seen for the first time."""
    rng = random.Random(kind)
    names = [f"team/p{number}" for number in range(count) if _kind_of(number) == kind]

    def render() -> None:
        body = {"label": "prod", "input_variables": _VALUES}
        answer = service.post(f"/prompt-templates/{rng.choice(names)}", body, status=200)
        if "Ada" not in str(answer["prompt_template"]) or answer["warning"]:
            raise RuntimeError(f"not rendered: {str(answer)[:300]}")

    in_turns(render, bare, 20)
    n = bench.sized(1_000, 50)
    before = cpu_seconds(service.pid).get("api", 0.0)
    renders, bares = in_turns(render, bare, n)
    used_ms = (cpu_seconds(service.pid).get("api", 0.0) - before) / n * 1000
    told = summary(renders)
    bench.report(
        f"render by label, {kind}, {count} prompts of {_VERSIONS} versions, 50 a second",
        **told,
        api_cpu_ms=round(used_ms, 2),
        target_p50_ms=RENDER_P50_MS,
        target_p95_ms=RENDER_P95_MS,
        yardstick_bare_route=summary(bares),
        met=told["p50_ms"] <= RENDER_P50_MS and told["p95_ms"] <= RENDER_P95_MS,
    )


def report_publications(bench: Bench, service: Service, n: int) -> None:
    disk = fdatasync_ms(bench.folder, n=bench.sized(200, 20))
    times = []
    for number in range(n):
        body = {
            "prompt_template": {"prompt_name": f"team/p{number}"},
            "prompt_version": {"prompt_template": blueprint(number, _kind_of(number))},
            "release_labels": ["prod"],
        }
        times.append(timed(lambda body=body: service.post("/rest/prompt-templates", body)))  # type: ignore[misc]
    told = summary(times)
    bench.report(
        "publish a version with a label",
        **told,
        target_p95_ms=PUBLISH_P95_MS,
        yardstick_fdatasync=disk,
        met=told["p95_ms"] <= PUBLISH_P95_MS,
    )


def in_turns(
    call: Callable[[], object], bare: Callable[[], object], n: int
) -> tuple[list[float], list[float]]:
    """Call `n` times at 50 a second, a second at a time, each followed by a second of the yardstick."""
    times: list[float] = []
    bares: list[float] = []
    while len(times) < n:
        some = min(_TURN, n - len(times))
        times += paced(call, some)
        bares += paced(bare, some)
    return times, bares


def paced(call: Callable[[], object], n: int) -> list[float]:
    """Call `n` times at 50 a second; milliseconds from when each was due, so that waiting counts."""
    begin = time.perf_counter() + 0.1
    times = []
    for number in range(n):
        due = begin + number * _PACE_S
        time.sleep(max(0.0, due - time.perf_counter()))
        late_ms = max(0.0, time.perf_counter() - due - _TIMER_S) * 1000
        times.append(late_ms + timed(call))
    return times


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def publish_snippets(service: Service) -> None:
    for name in _SNIPPETS:
        text = f"{sentence(random.Random(name), 20)} Answer in {{language}}."
        template = {"type": "completion", "content": [{"type": "text", "text": text}]}
        service.post(
            "/rest/prompt-templates",
            {"prompt_template": {"prompt_name": name}, "prompt_version": {"prompt_template": template}},
        )


def blueprint(number: int, kind: str) -> dict[str, Any]:
    """A chat of about 2 KB that reads four variables."""
    rng = random.Random(number)
    field = "{{{{ {} }}}}" if kind == "jinja2" else "{{{}}}"
    included = " ".join(f"@@@{name}@@@" for name in _SNIPPETS) if kind.endswith("snippets") else ""
    system = f"{sentence(rng, 120)} {included} Write {field.format('language')} for {field.format('who')}."
    user = f"{sentence(rng, 80)} {field.format('question')} In {field.format('limit')} words."
    return {
        "type": "chat",
        "template_format": "jinja2" if kind == "jinja2" else "f-string",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": system}]},
            {"role": "user", "content": [{"type": "text", "text": user}]},
        ],
    }


def seed(home: Path, count: int) -> None:
    """Fill a catalog as publications would: `count` prompts, each with its versions and a label."""
    store = open_store(Settings(home=home, api_key=KEY))
    now = datetime.now(UTC)
    try:
        bootstrap(store)
        with store.catalog.transaction() as connection:
            for first in range(0, count, 200):
                some = range(first, min(first + 200, count))
                connection.execute(prompts.insert(), [_prompt_row(number, now) for number in some])
                versions = [row for number in some for row in _version_rows(number, now)]
                connection.execute(prompt_versions.insert(), versions)
                connection.execute(prompt_labels.insert(), [_label_row(number, now) for number in some])
    finally:
        store.close()


def _prompt_row(number: int, now: datetime) -> dict[str, Any]:
    names = {"workspace_id": 1, "name": f"team/p{number}", "tags": ["bench"]}
    return {"id": number + 1, **names, "created_at": now, "updated_at": now}


def _version_rows(number: int, now: datetime) -> list[dict[str, Any]]:
    parameters = {"provider": "openai", "name": "gpt-4o-mini", "parameters": {"temperature": 0}}
    row = {
        "prompt_id": number + 1,
        "prompt_template": blueprint(number, _kind_of(number)) | {"input_variables": list(_VALUES)},
        "metadata": {"model": parameters},
        "commit_message": None,
        "user_id": 1,
        "created_at": now,
    }
    first = number * _VERSIONS
    return [row | {"id": first + version, "version_number": version} for version in range(1, _VERSIONS + 1)]


def _label_row(number: int, now: datetime) -> dict[str, Any]:
    labelled = number * _VERSIONS + _VERSIONS - 3
    point = {"prompt_id": number + 1, "name": "prod", "prompt_version_id": labelled}
    return {**point, "created_at": now, "updated_at": now}


def _kind_of(number: int) -> str:
    return _KINDS[number % len(_KINDS)]
