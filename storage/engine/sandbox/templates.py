"""jinja2 texts of one workspace, parsed and rendered by its sandbox worker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from storage.domain.blueprints import Text
from storage.domain.errors import InvalidConfig, LimitReached
from storage.engine.sandbox.kinds import JINJA2
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.process import Refused

_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class SandboxedJinja2:
    """Evaluates for one workspace; the rules of blueprints are handed one of these."""

    pool: Pool
    workspace_id: int

    def variables(self, texts: Sequence[Text]) -> list[tuple[str, ...]]:
        """The variables that each text reads, in order of first sight.

        Raises:
            InvalidConfig: a text does not parse; names line and position, from 1.
            Unavailable: no worker became free.
        """
        return [tuple(names) for names in self._ask(texts, None)]

    def render(self, texts: Sequence[Text], values: Mapping[str, Any]) -> list[str]:
        """Each text with its variables filled in; a missing one, and null, render as nothing.

        Raises:
            InvalidConfig: a text does not parse or render, or meets a limit.
            Unavailable: no worker became free.
        """
        return self.render_rows(texts, [values])[0]

    def render_rows(self, texts: Sequence[Text], rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """Each row's texts; raises as `render`, for the first row that fails."""
        return self._ask(texts, rows)

    def _ask(self, texts: Sequence[Text], rows: Sequence[Mapping[str, Any]] | None) -> list[list[str]]:
        request = {"texts": [text.text for text in texts], "rows": rows}
        try:
            answer = self.pool.ask(JINJA2, self.workspace_id, request)
        except Refused as refused:
            _refuse(texts, refused.problem)
        except LimitReached as error:
            raise LimitReached(error.limit, f"{texts[0].where}: {error.message}") from error
        if not _fits(answer, len(texts) if rows is None else len(rows), None if rows is None else len(texts)):
            raise InvalidConfig(f"{texts[0].where}: its result cannot be read")
        found: list[list[str]] = answer
        return found


def _fits(answer: Any, outer: int, inner: int | None) -> bool:
    """Whether what a worker answered is lists of sound text in the numbers that were asked for."""
    return (
        isinstance(answer, list)
        and len(answer) == outer
        and all(isinstance(part, list) and inner in {None, len(part)} for part in answer)
        and all(isinstance(text, str) and _is_sound(text) for part in answer for text in part)
    )


def _is_sound(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: no UTF-8 response could carry it
        return False
    return True


def _refuse(texts: Sequence[Text], problem: Mapping[str, Any]) -> NoReturn:
    match problem:
        case {"text": int() as index, "why": str() as why} if 0 <= index < len(texts):
            place = [
                f"{name} {problem[name]}"
                for name in ("line", "position")
                if isinstance(problem.get(name), int)
            ]
            where = f"{texts[index].where}: {', '.join(place)}".removesuffix(": ")
            raise InvalidConfig(f"{where}: {_printable(why)[:_LONGEST_REASON]}") from None
    raise InvalidConfig(f"{texts[0].where}: it is refused")


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
