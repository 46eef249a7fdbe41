"""What the benchmarks send: a log of about 3 KB, small and large CSV files; made from seeds, always alike."""

import base64
import csv
import io
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_WORDS = [
    "ledger",
    "harbour",
    "cedar",
    "velvet",
    "lantern",
    "quartz",
    "meadow",
    "signal",
    "copper",
    "autumn",
    "river",
    "pencil",
    "granite",
    "window",
    "candle",
    "marble",
    "orchard",
    "thunder",
    "blanket",
    "compass",
    "feather",
    "garden",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "mirror",
    "needle",
]
# Headers of the large file; `text` columns hold sentences with commas and quotes.
_HEADER = ("id", "question", "answer", "model", "score", "language", "notes", "source")
_MODELS = ["gpt-4o-mini", "gpt-4o", "claude-sonnet", "mistral-small"]


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words)).capitalize() + "."


def log_body(size: int = 3_000) -> bytes:
    """A request to log, `size` bytes of JSON within a few."""
    rng = random.Random(7)
    question = sentence(rng, 40)
    body: dict[str, Any] = {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "input": {
            "type": "chat",
            "messages": [_message("system", sentence(rng, 30)), _message("user", question)],
        },
        "output": {"type": "chat", "messages": [_message("assistant", "")]},
        "request_start_time": "2026-01-05T09:30:00.000Z",
        "request_end_time": "2026-01-05T09:30:01.250Z",
        "parameters": {"temperature": 0.2, "max_tokens": 512},
        "tags": ["bench", "support"],
        "metadata": {"user": "u-1234", "session": "s-5678", "environment": "bench"},
        "input_tokens": 321,
        "output_tokens": 123,
        "price": 0.00042,
        "function_name": "answer",
        "status": "SUCCESS",
    }
    missing = size - len(json.dumps(body))
    answer = " ".join(sentence(rng, 12) for _ in range(size // 60))[:missing]
    body["output"]["messages"][0]["content"][0]["text"] = answer
    return json.dumps(body).encode()


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def small_csv(rows: int = 10) -> bytes:
    rng = random.Random(11)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["question", "answer", "grade"])
    for number in range(rows):
        writer.writerow([sentence(rng, 12), sentence(rng, 20), number])
    return out.getvalue().encode()


def write_large_csv(path: Path, size: int) -> int:
    """Write a CSV of about `size` bytes, never over; return its data rows.

    Its texts are put together from many sentences of many words, as people's are: a file of few different
    lines would measure a cache, not a parser and a compressor.
    """
    rng = random.Random(13)
    sentences = _many_sentences(rng, min(40_000, 1_000 + size // 1_000))
    rows, written = 0, 0
    with path.open("w", newline="") as file:
        written += file.write(_csv_text([_HEADER]))
        while True:
            text = _csv_text([_large_row(rng, sentences, rows)])
            if written + len(text) > size:
                return rows
            written += file.write(text)
            rows += 1


def _csv_text(rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def _many_sentences(rng: random.Random, count: int) -> list[str]:
    syllables = [
        "ka",
        "ro",
        "mi",
        "sten",
        "vel",
        "tor",
        "an",
        "qui",
        "bra",
        "del",
        "ou",
        "fi",
        "shar",
        "lo",
        "ent",
    ]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(4_000)]
    return [" ".join(rng.choices(words, k=rng.randint(6, 18))).capitalize() for _ in range(count)]


def _large_row(rng: random.Random, sentences: list[str], number: int) -> list[object]:
    question, first, second, note = rng.choices(sentences, k=4)
    return [
        number,
        f'{question}, "{note[:12]}"?',
        f"{first}. {second}, {rng.randrange(10**6)}.",
        rng.choice(_MODELS),
        round(rng.random(), 4),
        rng.choice(["en", "de", "fr"]),
        note,
        f"https://example.org/{rng.randrange(10**9)}",
    ]


def file_source(name: str, content: bytes) -> dict[str, Any]:
    """The body of E8 for a file."""
    return {
        "source": {
            "type": "file",
            "file_name": name,
            "file_content_base64": base64.b64encode(content).decode(),
        }
    }
