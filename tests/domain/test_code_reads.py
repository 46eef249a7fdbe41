"""Which columns JavaScript code reads, by its tokens; what is unclear is said to be."""

import pytest

from storage.domain.javascript_reads import read_javascript


@pytest.mark.parametrize(
    ("code", "titles"),
    [
        ('return data["User Q"] + data.b', ["User Q", "b"]),
        ("return data['it\\'s'] + data?.b + data?.['c']", ["it's", "b", "c"]),
        ('const {a, "b c": d} = data;\nreturn a + d', ["a", "b c"]),
        ("const {a} = data\nreturn a", ["a"]),
        ('return "a" in data && data.b', ["a", "b"]),
        ("return `x ${data.q} ${`n ${data[\"z\"]}`} \\${data.no} ${'}'}`", ["q", "z"]),
        ('return "data.x" // data.y\n/* data.z */', []),
        ("return data.t.replace(/data.x\"/g, '') / data.n / data.m", ["t", "n", "m"]),
        ("if (/[/]data.x/.test(data.y)) return 1", ["y"]),
        ("return (1) / data.x / 2", ["x"]),
        ("return {data: 1}.data + other.data.x", []),
        ("return data.$a + data.größe + data._b1", ["$a", "größe", "_b1"]),
        ("return data.a.b.c", ["a"]),
        ("return 1.5.toFixed() + .5 + data.x", ["x"]),
        ("return data\n  .x", ["x"]),
        ("return data.a + data.a", ["a"]),
        ('return data["\\u0041\\n"]', ["A\n"]),
        ("", []),
    ],
)
def test_literal_titles_are_found_in_order(code: str, titles: list[str]) -> None:
    found = read_javascript(code)
    assert (list(found.titles), found.others) == (titles, False)


@pytest.mark.parametrize(
    "code",
    [
        "return data",
        "return data[x]",
        "return data['a' + 'b']",
        "return data[`a`]",
        "return Object.keys(data)",
        "const d = data; return d.x",
        "const {a = 1} = data",
        "const {a: {b}} = data",
        "const {...rest} = data",
        "const {[x]: a} = data",
        "({a} = data)",
        "return [1].map(data => data.x)",
        "return x in data",
        "return {data}",
        "return {...data}",
        "for (const k in data) {}",
        "return `${data}`",
        "return d\\u0061ta",
        "return \\u{64}ata[x]",
        "return data.d\\u0061ta",
    ],
)
def test_other_uses_are_never_missed(code: str) -> None:
    assert read_javascript(code).others


def test_a_name_written_with_escapes_counts() -> None:
    assert read_javascript("return d\\u0061ta.x").titles == ("x",)


@pytest.mark.parametrize("code", ["`${", "'abc", '"\\', "/* x", "/[", "data.", "data[", "{", "\\", "`${`${"])
def test_broken_code_ends_too(code: str) -> None:
    read_javascript(code)
