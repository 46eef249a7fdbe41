"""Wire shapes of the probes."""

from typing import Literal

from api.schemas.base import Answer, example

_PROCESS = {"name": "worker-host", "state": "running", "restarts": 0}
_READY = {
    "catalog": "ready",
    "logs": "ready",
    "dagster": "ready",
    "workers": "ready",
    "processes": [_PROCESS],
}

Word = Literal["ready", "not ready"]


class Alive(Answer):
    model_config = example({"status": "ok"})

    status: Literal["ok"] = "ok"


class ProcessState(Answer):
    """One process under the supervisor."""

    model_config = example(_PROCESS)

    name: str
    state: Literal["running", "waiting", "done"]
    restarts: int


class Ready(Answer):
    """Work is accepted and run."""

    model_config = example({"status": "ready", **_READY})

    status: Literal["ready"] = "ready"
    catalog: Word
    logs: Word
    dagster: Word
    workers: Word
    processes: list[ProcessState]


class NotReady(Answer):
    """Something is missing; `message` names it. The body of a failure, with the state of each part."""

    model_config = example(
        {
            "success": False,
            "message": "Not ready yet: workers. `promptlake doctor` says more.",
            "error": "unavailable",
            **_READY,
            "workers": "not ready",
        }
    )

    success: Literal[False] = False
    message: str
    error: str
    catalog: Word
    logs: Word
    dagster: Word
    workers: Word
    processes: list[ProcessState]
