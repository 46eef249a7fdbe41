"""The evaluator of jinja2 templates over rows; the language is that of `jinja2`.

{"prepare": [text, ...]} parses the texts, and answers null; then {"rows": number, "names": [variable, ...]}
with an array of values a name answers as `cells` says: a cell is [rendered text, ...].
"""

import json
from json.encoder import encode_basestring
from typing import Any

from minijinja import Environment, TemplateError

from storage.engine.sandbox.inside.cells import MAX_VALUE, RESULT_TOO_LARGE, TIMEOUT, Cells
from storage.engine.sandbox.inside.jinja2 import new_environment, refusal_of
from storage.engine.sandbox.inside.worker import Evaluator, Refusal

RENDER_ERROR = "TEMPLATE_RENDER_ERROR"


def evaluator() -> Evaluator:
    """Return the evaluator, its engine loaded and tried."""
    evaluate = _Evaluator()
    evaluate({"prepare": ["{% for i in [1.5, 'a'] %}{{ i|upper }}{% endfor %}{{ a.b|tojson }}"]})
    if (
        evaluate({"rows": 1, "names": ["a"], "parts": [b'[{"b":[]}]']})
        != b'{"values":[["1.5A[]"]],"errors":[]}'
    ):
        raise RuntimeError("minijinja does not render")
    return _Evaluator()


class _Evaluator:
    def __init__(self) -> None:
        self._texts: list[str] | None = None
        self._environment: Environment = new_environment()

    def __call__(self, request: Any) -> Any:
        if "prepare" in request:
            self._environment = new_environment()
            for index, text in enumerate(request["prepare"]):
                try:
                    self._environment.add_template(str(index), text)
                except TemplateError as error:
                    raise refusal_of(error, index, text) from None
            self._texts = request["prepare"]
            return None
        if self._texts is None:
            raise Refusal({"why": "nothing was prepared"})
        return self._evaluated(request, self._texts)

    def _evaluated(self, request: Any, texts: list[str]) -> bytes:
        names, count = request["names"], request["rows"]
        columns = [json.loads(part) for part in request["parts"]]
        cells = Cells()
        for values in zip(*columns, strict=True) if columns else [()] * count:
            self._render(dict(zip(names, values, strict=True)), texts, cells)
            if cells.full:
                break
        return cells.spelled()

    def _render(self, row: dict[str, Any], texts: list[str], cells: Cells) -> None:
        rendered = []
        for index, text in enumerate(texts):
            try:
                rendered.append(self._environment.render_template(str(index), **row))
            except TemplateError as error:
                problem = refusal_of(error, index, text).problem
                if problem["limit"]:
                    cells.fail(TIMEOUT, "The template takes too many steps", problem["line"])
                else:
                    cells.fail(RENDER_ERROR, problem["why"], problem["line"])
                return
            if len(rendered[-1]) > MAX_VALUE:
                cells.fail(RESULT_TOO_LARGE, f"The text is over {MAX_VALUE} characters")
                return
        cells.add(f"[{','.join(map(encode_basestring, rendered))}]", whole=False)
