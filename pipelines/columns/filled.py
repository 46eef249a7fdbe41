"""prompt_template that asks nobody: prompts filled from the rows, a whole chunk at once."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import polars as pl

from pipelines.columns.asks import REVISION
from pipelines.columns.prompt_template import Filling, opened_filling, pin
from pipelines.columns.protocol import RunContext, Runner, RunnerKind
from pipelines.columns.values import json_text
from storage.domain.blueprints import CHAT, text_of_blocks, with_texts
from storage.domain.results import Answers, Chunk, Values

_SHOWN = ("role", "content", "name", "tool_calls", "tool_call_id")
# what no text of a prompt is: a noncharacter stands for each of its texts
_MARK = "\ufdd0{}\ufdd0"
_MARKED = re.compile("\ufdd0(\\d+)\ufdd0")
_MARKED_STRING = re.compile('"\ufdd0(\\d+)\ufdd0"')


@dataclass(frozen=True, slots=True)
class Filled:
    """Fills prompts: a row's value is the text of a completion, the messages of a chat."""

    filling: Filling

    def compute(self, chunk: Chunk) -> Iterable[Answers]:
        """Yield one answer for the whole chunk."""
        blueprint = self.filling.source.blueprint
        rendered = self.filling.rendered(chunk)
        texts, errors = ((), {}) if rendered is None else (rendered.texts, rendered.errors)
        numbers = count()
        marked = with_texts(blueprint, lambda _: _MARK.format(next(numbers)))
        if blueprint["type"] == CHAT:
            quoted = [json_text(Values("text", one)) for one in texts]
            values = Values("json", _joined(_MARKED_STRING, _messages(marked), quoted, len(chunk)))
        else:
            text = text_of_blocks(marked["content"])
            values = Values("text", _joined(_MARKED, text, texts, len(chunk)))
        yield Answers(values, errors=errors)


def _messages(blueprint: Mapping[str, Any]) -> str:
    messages = [{key: one[key] for key in _SHOWN if key in one} for one in blueprint["messages"]]
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":"))


def _joined(marks: re.Pattern[str], text: str, texts: Sequence[pl.Series], rows: int) -> pl.Series:
    """Put texts of rows where a text has their marks; a row without one of them is null."""
    frame = pl.DataFrame([one.alias(str(at)) for at, one in enumerate(texts)])
    # the pieces between the marks, and every other one the number of a mark
    pieces = marks.split(text)
    parts = [pl.col(piece) if at % 2 and piece in frame else pl.lit(piece) for at, piece in enumerate(pieces)]
    if len(parts) == 1:
        return pl.Series([text], dtype=pl.String).new_from_index(0, rows)
    return frame.select(pl.concat_str(parts)).to_series()


@contextmanager
def _open(context: RunContext) -> Iterator[Runner]:
    with opened_filling(context) as filling:
        yield Filled(filling)


KIND = RunnerKind(engine=lambda _: f"asks {REVISION}", open=_open, pin=pin, first_rows=256)
