"""The body of a batch of logs and its answer."""

from typing import Any, Literal

from pydantic import Field, TypeAdapter

from api.json_body import load_json, validate_value
from api.own_workspace import leave_out_own
from api.schemas.base import Answer, Body, example
from api.schemas.request_logs import LOG_REQUEST, LogRequest
from storage.domain.errors import Invalid, PayloadTooLarge, Problem
from storage.domain.keys import Principal

MOST_LOGS = 1_000
# More than 64 MB of real logs hold; each takes some hundred bytes of memory while the batch is read.
MOST_VALUES = 4_000_000
# A body that is wrong all over is told so by its first places.
_MOST_PROBLEMS = 100


def _example() -> dict[str, Any]:
    schema: Any = LogRequest.model_config["json_schema_extra"]
    return {"requests": schema["examples"]}


class LogBatch(Body):
    """Logs to be recorded together, all or none."""

    model_config = Body.model_config | example(_example())

    requests: list[LogRequest] = Field(min_length=1, max_length=MOST_LOGS)


class LogBatchAnswer(Answer):
    """The ids of the logs, in the order in which they were given."""

    model_config = Answer.model_config | example({"success": True, "ids": [17, 18]})

    success: Literal[True] = True
    ids: list[int]


class _Envelope(Body):
    """A batch whose logs are not looked at yet."""

    requests: list[Any] = Field(min_length=1, max_length=MOST_LOGS)


_ENVELOPE: TypeAdapter[_Envelope] = TypeAdapter(_Envelope)


def read_batch(raw: bytes, who: Principal) -> list[LogRequest]:
    """Read and validate a batch; log by log, so that other threads get their turn between.

    Raises:
        Malformed: it is no JSON, or names another workspace.
        PayloadTooLarge: it has too many values.
        Invalid: it does not fit; each problem is told by its path (`requests.17.input.type`).
    """
    if raw.count(b",") > MOST_VALUES:  # commas of texts count too: real ones are far fewer
        raise PayloadTooLarge(f"A batch has at most {MOST_VALUES} values")
    body = load_json(raw)
    leave_out_own(body, who)
    given = validate_value(_ENVELOPE, body).requests
    problems: list[Problem] = []
    logs: list[LogRequest] = []
    for at, one in enumerate(given):
        try:
            logs.append(validate_value(LOG_REQUEST, one, "requests", str(at)))
        except Invalid as error:
            problems += error.problems
            if len(problems) >= _MOST_PROBLEMS:
                break
    if problems:
        raise Invalid(*problems[:_MOST_PROBLEMS])
    return logs
