"""The evaluator of jinja2 templates: minijinja, without a loader, on a ration of fuel.

A request is {"texts": [...], "rows": [{name: value}] | null}. Without rows the texts are parsed, and the
answer is [[name, ...] of each text]: the variables that it reads, in order of first sight. With rows the
answer is [[rendered text, ...] of each row].

The language is jinja2's, with these differences; what this engine refuses is refused, and never handed to
another engine: one text must not have two meanings.

- A missing variable, also one reached through (`{{ user.name }}`), and null render as nothing. Other values
  are spelled as jinja2 spells them: True, [1, 'x'], {'k': 'v'}. `tojson` keeps characters and order of keys.
- `include`, `import` and `extends` find nothing: a template is one text. No `{% trans %}`, no autoescape.
- `%` does not format; `"..." | format(...)` and `"...".format(...)` do.
- The filters center, forceescape, random, urlize, wordcount and xmlattr, the test callable and the global
  lipsum are missing; `truncate` takes its arguments by name. A trailing newline is kept.
- A range has at most 100,000 numbers, calls nest at most some hundred deep, integers have 128 bits.
- Variables are names of the language: a title such as `User Question` is read in f-string templates only.
"""

import re
from typing import Any

from minijinja import Environment, TemplateError

from storage.engine.sandbox.inside.worker import Evaluator, Refusal

# About half a second of loops; a common prompt burns less than a thousand.
FUEL = 10_000_000
MAX_TEXT = 8_388_608

_OWN_NAMES = frozenset({"cycler", "dict", "joiner", "namespace", "range"})
_WORD = re.compile(r"[^\W\d]\w*")


def evaluator() -> Evaluator:
    """Return the evaluator, warm: what is loaded at first use has been loaded."""
    evaluate(
        {
            "texts": ["{% for i in [1.5, 'a'] %}{{ i|upper }}{% endfor %}{{ a.b|tojson }}", "{{ b }}"],
            "rows": [{"a": {"b": None}}],
        }
    )
    return evaluate


def evaluate(request: Any) -> Any:
    """Answer one request.

    Raises:
        Refusal: a text does not parse or does not render.
    """
    texts, rows = request["texts"], request["rows"]
    environment = new_environment()
    if rows is None:
        return [_variables(environment, index, text) for index, text in enumerate(texts)]
    for index, text in enumerate(texts):
        try:
            environment.add_template(str(index), text)
        except TemplateError as error:
            raise refusal_of(error, index, text) from None
    return [[_rendered(environment, index, text, row) for index, text in enumerate(texts)] for row in rows]


def new_environment() -> Environment:
    """Return an environment without templates; each render has its ration."""
    # debug off: an error that shows the values of variables would carry them into messages and logs
    environment = Environment(
        fuel=FUEL, undefined_behavior="chainable", debug=False, finalizer=_spelled, keep_trailing_newline=True
    )
    environment.remove_global("debug")
    return environment


def _spelled(value: Any) -> Any:
    return "" if value is None else NotImplemented


def _rendered(environment: Environment, index: int, text: str, row: dict[str, Any]) -> str:
    try:
        rendered = environment.render_template(str(index), **row)
    except TemplateError as error:
        raise refusal_of(error, index, text) from None
    if len(rendered) > MAX_TEXT:
        raise Refusal({"text": index, "why": f"the text is over {MAX_TEXT} characters", "limit": True})
    return rendered


def _variables(environment: Environment, index: int, text: str) -> list[str]:
    try:
        names = environment.undeclared_variables_in_str(text) - _OWN_NAMES
    except TemplateError as error:
        raise refusal_of(error, index, text) from None
    # a set comes without order; the first word of that name is where it is first seen
    seen = {word: None for word in _WORD.findall(text) if word in names}
    return [*seen, *sorted(names - seen.keys())]


def refusal_of(error: TemplateError, index: int, text: str) -> Refusal:
    """Say what is wrong with a text, and where."""
    why = error.detail or error.message.partition(" (in ")[0]
    problem = {"text": index, "why": why, "line": error.line, "limit": error.kind == "OutOfFuel"}
    if error.range is not None:
        start = len(text.encode()[: error.range[0]].decode("utf-8", "replace"))
        problem["position"] = start - (text.rfind("\n", 0, start) + 1) + 1
    return Refusal(problem)
