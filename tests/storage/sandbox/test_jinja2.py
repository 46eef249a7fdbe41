"""jinja2 texts in the sandbox: what they mean, what they are refused, what attacks come to."""

from typing import Any

import pytest
from jinja2 import ChainableUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from storage.domain.blueprints import Text
from storage.domain.errors import InvalidConfig, LimitReached
from storage.engine.sandbox import templates
from storage.engine.sandbox.pool import Pool
from storage.engine.sandbox.templates import SandboxedJinja2
from tests.storage.sandbox.conftest import HASTY_JINJA2


def text(source: str, where: str = "here") -> Text:
    return Text(where, source, "jinja2")


@pytest.fixture
def jinja2(shared_pool: Pool) -> SandboxedJinja2:
    return SandboxedJinja2(shared_pool, 1)


@pytest.mark.parametrize(
    ("source", "values", "rendered"),
    [
        ("Hello {{ name }}!\n", {"name": "Ada"}, "Hello Ada!\n"),
        ("{{ a }}|{{ b }}|{{ c }}|{{ d }}", {"a": True, "b": 1.5, "c": [1, "x", None], "d": {"k": "v"}},
         "True|1.5|[1, 'x', None]|{'k': 'v'}"),
        ("[{{ gone }}][{{ gone.deep.er }}][{{ null }}]", {"null": None}, "[][][]"),
        ("{{ null is none }} {{ gone is defined }} {{ gone|default('d') }}", {"null": None}, "True False d"),
        ("{% for m in turns %}{{ loop.index }}:{{ m.role }} {% endfor %}",
         {"turns": [{"role": "a"}, {"role": "b"}]}, "1:a 2:b "),
        ("{% if x > 1 %}many{% else %}one{% endif %}", {"x": 2}, "many"),
        ("{% set n = namespace(i=0) %}{% for _ in 'abc' %}{% set n.i = n.i + 1 %}{% endfor %}{{ n.i }}",
         {}, "3"),
        ("{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, b=3) }}", {}, "1-2 1-3"),
        ("{{ d.items()|list }} {{ 'a,b'.split(',') }} {{ 'x'.upper() }}", {"d": {"k": 1}},
         "[('k', 1)] ['a', 'b'] X"),
        ("{{ v|tojson }}", {"v": {"a": [1, None, "ü"]}}, '{"a": [1, null, "ü"]}'),
        ("<b>{{ v }}</b>", {"v": "<i>&"}, "<b><i>&</b>"),
        ("{# note #}{% raw %}{{ x }}{% endraw %}", {"x": 1}, "{{ x }}"),
        ("{{ source }}{{ name }}", {"source": 2, "name": 3}, "23"),
        ("{{ 'x' }}\x00{{ n }}", {"n": 10**30}, "x\x00" + str(10**30)),
        ("", {}, ""),
        ("{{ xs|join(', ') }} {{ xs|first }} {{ xs|length }} {{ xs|map('upper')|list }}", {"xs": ["a", "b"]},
         "a, b a 2 ['A', 'B']"),
        ("{{ rows|selectattr('ok')|map(attribute='n')|sum }}",
         {"rows": [{"ok": True, "n": 2}, {"ok": False, "n": 3}, {"ok": True, "n": 5}]}, "7"),
        ("{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}", {"d": {"b": 1, "a": 2}}, "a=2;b=1;"),
        ("{% for g in rows|groupby('k') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}",
         {"rows": [{"k": 1}, {"k": 2}, {"k": 1}]}, "1:2 2:1 "),
        ("{{ 7 // 2 }} {{ 7 / 2 }} {{ 7 % 4 }} {{ 2 ** 10 }} {{ 'a' ~ 1 }} {{ -3|abs }}", {},
         "3 3.5 3 1024 a1 3"),
        ("{{ 'ab'[0] }} {{ 'abc'[1:] }} {{ [1, 2, 3][-1] }} {{ {'a': 1}['a'] }} {{ 1 in [1] }}", {},
         "a bc 3 1 True"),
        ("{%- for i in range(5) if i is odd -%} {{ i }} {%- else -%} none {%- endfor -%}", {}, "13"),
        ("{% for i in range(9) if i != 2 %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", {},
         "013"),
        ("{% filter upper %}a{{ x }}{% endfilter %}{% set y %}b{% endset %}{{ y }}", {"x": "c"}, "ACb"),
        ("{% with a = 1 %}{{ a }}{% endwith %}{{ a }}", {}, "1"),
        ("{{ 'x'|default('d') }} {{ ''|default('d', true) }} {{ '%s-%s'|format('a', 1) }}", {}, "x d a-1"),
        ("{{ 3.14159|round(2) }} {{ '5'|int + 1 }} {{ 'a b'|title }} {{ ' x '|trim }}", {},
         "3.14 6 A B x"),
        ("{{ 'a rather long text here'|truncate(length=12) }} {{ 'a&b c'|urlencode }} {{ '<b>'|e }}", {},
         "a rather... a%26b%20c &lt;b&gt;"),
        ("{{ s.strip() }} {{ s.replace('a', 'b') }} {{ s.startswith(' a') }}", {"s": " a "},
         "a  b  True"),
        ("{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}", {}, "<1>"),
    ],
)  # fmt: skip
def test_templates_mean_what_they_mean_in_jinja2(
    jinja2: SandboxedJinja2, source: str, values: dict[str, Any], rendered: str
) -> None:
    assert jinja2.render([text(source)], values) == [rendered]
    original = ImmutableSandboxedEnvironment(
        undefined=ChainableUndefined,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
        finalize=lambda value: "" if value is None else value,
    )
    original.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    assert original.from_string(source).render({**values}) == rendered


def test_a_variable_may_have_any_name_of_the_language(jinja2: SandboxedJinja2) -> None:
    assert jinja2.render([text("{{ self }}{{ größe }}")], {"self": 1, "größe": 2, "User Question": 3}) == [
        "12"
    ]


def test_variables_come_in_order_of_first_sight_without_what_is_the_languages_own(
    jinja2: SandboxedJinja2,
) -> None:
    source = (
        "{{ zeta }} {{ a.b }} {% for i in items %}{{ i }}{{ loop.index }}{% endfor %}{% set q = 1 %}{{ q }}"
        "{% for k in range(3) %}{{ dict() }}{% endfor %}"
        "{% macro m(z) %}{{ z }}{{ w }}{% endmacro %}{{ zeta }}"
    )
    assert jinja2.variables([text(source), text("plain"), text("{{ größe }}")]) == [
        ("zeta", "a", "items", "w"),
        (),
        ("größe",),
    ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("hällo\nwörld {{ 1 + }}", "there: line 2, position 14: unexpected end"),
        ("{{ ü }} {% for x in y %}", "there: line 1, position"),
        ("{% nonsense %}", "unknown statement nonsense"),
        ("{{ x", "line 1"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "recursion"),
        ("{% if 1 %}" * 5000 + "{% endif %}" * 5000, "recursion"),
    ],
)
def test_what_does_not_parse_is_named_by_text_line_and_position(
    jinja2: SandboxedJinja2, source: str, words: str
) -> None:
    for refused in (
        lambda: jinja2.variables([text("{{ fine }}"), text(source, "there")]),
        lambda: jinja2.render([text("{{ fine }}"), text(source, "there")], {}),
    ):
        with pytest.raises(InvalidConfig, match=r"^there: ") as error:
            refused()
        assert words in error.value.message


LEAKS = [
    "{{ x.__class__ }}",
    "{{ x.__class__.__mro__[1].__subclasses__() }}",
    "{{ x.__init__.__globals__ }}",
    "{{ x.items.__self__ }}",
    "{{ x.keys.__func__ }}",
    "{{ ''.__class__.__base__ }}",
    "{{ ().__class__ }}",
    "{{ x|attr('__class__') }}",
    "{{ x|map(attribute='__class__')|list|first }}",
    "{{ x['__class__'] }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ range.__globals__ }}",
    "{{ namespace.__init__ }}",
    "{{ self.__init__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ config }}{{ request }}{{ environ }}{{ os }}",
    "{{ lipsum.__globals__ }}",
    "{{ debug() }}",
    "{{ x.pop.__call__ }}",
    "{{ x.__reduce__() }}",
    "{{ x.__getattribute__('keys') }}",
    "{{ '{0.__class__}'.format(x) }}",
    "{{ '{0.__init__.__globals__}'.format(x) }}",
    "{{ '%(a.__class__)s'|format(a=x) }}",
    "{% include '/etc/passwd' ignore missing %}",
    "{% include '/etc/passwd' %}",
    "{% include '../../etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.environ }}",
    "{% from 'os' import environ %}{{ environ }}",
    "{{ undefined_function('/etc/passwd') }}",
]


@pytest.mark.parametrize("source", LEAKS)
def test_nothing_leaks(jinja2: SandboxedJinja2, source: str) -> None:
    try:
        rendered = jinja2.render([text(source)], {"x": {"k": "v"}})[0]
    except InvalidConfig as refused:
        rendered = refused.message
        assert len(rendered) < 500
    for trace in ("<class", "object at", "function", "root:", "environ(", "/site-packages", "storage"):
        if trace not in source:
            assert trace not in rendered or rendered.startswith("here: "), rendered
    assert "root:" not in rendered
    assert "<class" not in rendered


GROWING = "{% set n = namespace(s=START) %}{% for i in range(99999) %}{% set n.s = STEP %}{% endfor %}"
NESTED = GROWING.replace("START", "[]").replace("STEP", "[n.s]")
BOMBS = {
    "a huge range": "{{ range(10 ** 9)|length }}",
    "a long text": "{{ 'x' * 10 ** 9 }}",
    "a long list": "{{ [1] * 10 ** 9 }}",
    "a long list, counted": "{{ ([1] * 10 ** 9)|length }}{{ ([1] * 10 ** 9)|list|length }}",
    "nested loops": "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "loops that print": "{% for i in range(9999) %}{% for j in range(9999) %}{{ j }}{% endfor %}{% endfor %}",
    "a macro that calls itself": "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "doubling": GROWING.replace("START", "'x'").replace("STEP", "n.s ~ n.s"),
    "doubling lists": GROWING.replace("START", "[1]").replace("STEP", "n.s + n.s") + "{{ n.s|length }}",
    "a huge output": "{% for i in range(100000) %}{{ big }}{% endfor %}",
    "a wide format": "{{ '%1000000000d'|format(3) }}",
    "a wide method format": "{{ '{:1000000000}'.format(3) }}",
    "a wide indent": "{{ 'x'|indent(10 ** 9) }}",
    "replace": "{{ ('x' * 99999)|replace('x', 'y' * 99999) }}",
    "join": "{{ range(100000)|join('y' * 99999) }}",
    "wordwrap": "{{ ('x ' * 9999999)|wordwrap(1) }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "batch": "{{ [1]|batch(10 ** 9, 'x')|list }}",
    "slice": "{{ [1]|slice(10 ** 9)|list }}",
    "a deep list": NESTED + "{{ n.s }}",
    "a deep list as JSON": NESTED + "{{ n.s|tojson }}",
    "a list of itself": "{% do x.append(x) %}{{ x|tojson }}",
    "a chain of filters": "{{ x" + "|upper" * 100_000 + " }}",
    "a recursive loop": "{% for i in x recursive %}{{ loop(x) }}{% endfor %}",
    "sorting": "{% for i in range(99999) %}{{ range(99999)|sort(reverse=true)|first }}{% endfor %}",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_and_the_next_render_works(
    shared_pool: Pool, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(templates, "JINJA2", HASTY_JINJA2)
    values = {"x": [1], "big": "b" * 10_000}
    with pytest.raises(InvalidConfig, match=r"^here: ") as met:
        SandboxedJinja2(shared_pool, 1).render([text(BOMBS[name])], values)
    assert len(met.value.message) < 500
    for workspace in (2, 1):
        assert SandboxedJinja2(shared_pool, workspace).render([text("{{ x }}")], {"x": 1}) == ["1"]


def test_parsing_is_limited_and_a_text_of_a_megabyte_is_within_the_limits(shared_pool: Pool) -> None:
    jinja2 = SandboxedJinja2(shared_pool, 1)
    with pytest.raises(LimitReached):
        jinja2.variables([text("{{ x" + "|upper" * 100_000 + " }}")])
    long = "{{ x }}" * 140_000
    assert jinja2.variables([text(long)]) == [("x",)]
    assert jinja2.render([text(long)], {"x": "yy"}) == ["yy" * 140_000]


def test_a_request_over_the_size_of_a_frame_is_refused_before_it_is_sent(jinja2: SandboxedJinja2) -> None:
    with pytest.raises(InvalidConfig, match="too large"):
        jinja2.render([text("{{ x }}")], {"x": "x" * (17 << 20)})
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(InvalidConfig, match="nested too deeply"):
        jinja2.render([text("{{ x }}")], {"x": nested})


def test_a_limit_names_the_text_and_the_reason(shared_pool: Pool) -> None:
    doubling = BOMBS["doubling"]
    with pytest.raises(LimitReached, match=r"^here: it ended its worker.*256 MB of memory"):
        SandboxedJinja2(shared_pool, 1).render([text(doubling)], {})


def test_rows_are_rendered_in_one_call(jinja2: SandboxedJinja2) -> None:
    rows = [{"n": number} for number in range(1000)]
    rendered = jinja2.render_rows([text("{{ n }}"), text("{{ n * 2 }}")], rows)
    assert rendered == [[str(number), str(number * 2)] for number in range(1000)]


@pytest.mark.parametrize(
    "answer",
    [None, {}, [], [["a"], ["b"]], [["a", "b"]], [[1]], ["a"], [["\ud800"]], [[None]]],
)
def test_what_a_worker_says_is_not_taken_on_trust(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    pool = Pool()
    monkeypatch.setattr(pool, "ask", lambda *_: answer)
    with pytest.raises(InvalidConfig, match=r"^here: its result cannot be read"):
        SandboxedJinja2(pool, 1).render([text("x")], {})
