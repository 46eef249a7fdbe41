"""A home with very many logs: segments written by the engine's own writer, without a service in between."""

import json
import random
from collections.abc import Iterator

from storage.engine.log_schema import log_state
from storage.engine.log_segments import write_log_segments
from storage.engine.rows.log_segments import insert_segments
from storage.engine.rows.log_tail import TailRow
from storage.log_flush import MAX_SEGMENT_ROWS
from storage.store import Store

RARE = "zyzzyva"
RARE_EVERY = 50_000
FIRST_US = 1_767_225_600_000_000
STEP_US = 250_000
MODELS = [
    ("openai", "gpt-4o"), ("openai", "gpt-4o-mini"), ("openai", "o3"), ("anthropic", "claude-sonnet-4"),
    ("anthropic", "claude-haiku-4"), ("google", "gemini-2.5-pro"), ("google", "gemini-2.5-flash"),
    ("mistral", "mistral-large"), ("mistral", "ministral-8b"), ("deepseek", "deepseek-chat"),
]  # fmt: skip
USERS, CUSTOMERS, PROMPTS = 100_000, 1_000, 50


class Logs:
    """Bodies by id, the same for the same id; about 1.7 KB each."""

    def __init__(self, seed: int = 7) -> None:
        drawn = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprstv" for b in ("a", "e", "i", "o", "u", "an", "or")]
        words = ["".join(drawn.choices(syllables, k=drawn.randint(2, 4))) for _ in range(5_000)]
        self._sentences = [" ".join(drawn.choices(words, k=12)).capitalize() + "." for _ in range(20_000)]

    def row(self, log_id: int, workspace_id: int = 1) -> TailRow:
        drawn = random.Random(log_id)
        provider, model = MODELS[min(int(drawn.expovariate(0.5)), len(MODELS) - 1)]
        asked, answered = (" ".join(drawn.choices(self._sentences, k=4)) for _ in range(2))
        if log_id % RARE_EVERY == 0:
            asked += f" {RARE}"
        message: dict[str, object] = {"role": "assistant", "content": [{"type": "text", "text": answered}]}
        kind = log_id % 20
        if kind < 3:
            verdict = {"verdict": drawn.choice("abc"), "score": {"value": drawn.randint(0, 9)}}
            message["content"] = [{"type": "text", "text": json.dumps(verdict)}]
        elif kind == 3:
            call = {"name": drawn.choice(("weather", "search")), "arguments": '{"city": "Oslo"}'}
            message |= {"content": [], "tool_calls": [{"id": "c", "type": "function", "function": call}]}
        start = FIRST_US + log_id * STEP_US
        failed = drawn.random() < 0.02
        prompt = drawn.randint(1, PROMPTS)
        fields = {
            "provider": provider,
            "model": model,
            "input": {
                "type": "chat",
                "messages": [
                    {"role": "system", "content": [{"type": "text", "text": self._sentences[prompt]}]},
                    {"role": "user", "content": [{"type": "text", "text": asked}]},
                ],
            },
            "output": {"type": "chat", "messages": [message]},
            "request_start_time": start,
            "request_end_time": start + int(drawn.lognormvariate(13.5, 0.6)),
            "parameters": {"temperature": 0.2, "max_tokens": 1000},
            "tags": drawn.sample(("prod", "beta", "eval", "batch"), k=drawn.randint(0, 2)),
            "metadata": {
                "user": f"u{drawn.randrange(USERS)}",
                "customer": f"customer-{drawn.randrange(CUSTOMERS)}",
                "env": drawn.choice(("prod", "prod", "staging")),
            },
            "prompt_name": f"prompt-{prompt}",
            "prompt_id": prompt,
            "prompt_version_number": drawn.randint(1, 5),
            "prompt_input_variables": {"question": asked[:60], "n": drawn.randint(1, 100)},
            "input_tokens": len(asked) // 4,
            "output_tokens": len(answered) // 4,
            "price": drawn.randint(1, 10_000_000) / 1e8,
            "function_name": "",
            "api_type": "chat-completions",
            "status": "ERROR" if failed else "SUCCESS",
            "error_type": "PROVIDER_TIMEOUT" if failed else None,
            "error_message": "no answer in time" if failed else None,
        }
        return TailRow(log_id, workspace_id, start, json.dumps(fields, separators=(",", ":")).encode())


def fill(store: Store, count: int, *, chunk: int = MAX_SEGMENT_ROWS) -> int:
    """Fill an empty store with logs 1 to `count`; return the bytes of their JSON."""
    logs, received = Logs(), 0
    for first in range(1, count + 1, chunk):
        rows = [logs.row(log_id) for log_id in range(first, min(first + chunk, count + 1))]
        received += sum(len(row.body) for row in rows)
        written = write_log_segments(store.data, rows, new_id=store.new_id, now_us=rows[-1].created_us)
        with store.logs.transaction() as connection:
            insert_segments(connection, written)
    with store.logs.transaction() as connection:
        state = {"only": 1, "next_id": count + 1, "appended_bytes": 0, "flushed_bytes": 0}
        state |= {"flushed_through": count, "score_change": 0, "scores_through": 0}
        connection.execute(log_state.delete())
        connection.execute(log_state.insert().values(state))
    return received


def tail(count: int, after: int) -> Iterator[TailRow]:
    """Rows that follow, for the tail."""
    logs = Logs()
    return (logs.row(log_id) for log_id in range(after + 1, after + count + 1))
