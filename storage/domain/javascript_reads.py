"""Which columns JavaScript code reads, by its tokens alone.

The scan errs on the safe side: what it cannot read as a literal title counts as reading more.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from storage.domain.column_types.binding import CodeReads


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is name, text (a string without escapes that matter), template, regex, number or sign."""

    kind: str
    text: str
    line: int


_SPACE = re.compile(r"(?:\s|//[^\n\r\u2028\u2029]*|/\*.*?\*/)+", re.DOTALL)
_NUMBER = re.compile(r"\.?\d[\w.]*")
_STRING = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)
_REGEX = re.compile(r"/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
# A name may be written with escapes.
_NAME = re.compile(r"(?:[^\W\d]|[$#]|\\u\{?[0-9a-fA-F]+\}?)(?:[\w$]|\\u\{?[0-9a-fA-F]+\}?)*")
_SIGN = re.compile(r"\?\.(?!\d)|=>|\.\.\.|.", re.DOTALL)
# After these a slash begins a regular expression; after other words and closing brackets it divides.
_BEFORE_REGEX = frozenset(
    ("return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "instanceof")
)
_CLOSING = frozenset(")]}")
_PLAIN = (("number", _NUMBER), ("name", _NAME), ("sign", _SIGN))
_LAST_CHARACTER = 0x10FFFF
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)


def read_javascript(source: str) -> CodeReads:
    """Find `data["T"]`, `data?.["T"]`, `data.T`, `data?.T`, `"T" in data` and `{a, b: c} = data`."""
    tokens = list(_tokens(source))
    titles: dict[str, None] = {}
    others = False
    for at in range(len(tokens)):
        if not _is_data(tokens, at):
            continue
        found = _titles(tokens, at)
        if found is None:
            others = True
        else:
            titles.update(dict.fromkeys(found))
    return CodeReads(tuple(titles), others)


def _is_data(tokens: list[Token], at: int) -> bool:
    """Whether this is the variable, not a member or a key of that name."""
    token = tokens[at]
    # a name may be written with escapes: whatever has one may be `data`
    if token.kind != "name" or (token.text != "data" and "\\" not in token.text):
        return False
    before = _text(tokens, at - 1)
    if before in {".", "?."}:
        return False
    is_key = _text(tokens, at + 1) == ":" and before in {"{", ","}
    return not is_key


def _titles(tokens: list[Token], at: int) -> list[str] | None:
    """The titles that this use of `data` names; None where it does not say which."""
    before, after = _at(tokens, at - 1), _text(tokens, at + 1)
    if after in {".", "?.", "["}:
        return _member(tokens, at + 1)
    if before.kind == "name" and before.text == "in":
        key = _at(tokens, at - 2)
        return [key.text] if key.kind == "text" else None
    ends = after in {";", ",", ""} or _at(tokens, at + 1).line > tokens[at].line
    if ends and before.text == "=" and _text(tokens, at - 2) == "}":
        return _destructured(tokens, at - 2)
    return None


def _member(tokens: list[Token], at: int) -> list[str] | None:
    """`.T`, `?.T`, `["T"]` or `?.["T"]` that begins here."""
    if tokens[at].text == "[":
        return _bracketed(tokens, at)
    member = _at(tokens, at + 1)
    if member.kind == "name" and "\\" not in member.text:
        return [member.text]
    return _bracketed(tokens, at + 1) if tokens[at].text == "?." and member.text == "[" else None


def _bracketed(tokens: list[Token], at: int) -> list[str] | None:
    key = _at(tokens, at + 1)
    return [key.text] if key.kind == "text" and _text(tokens, at + 2) == "]" else None


def _destructured(tokens: list[Token], closing: int) -> list[str] | None:
    """The keys of `{a, "b c": d, e = 1}`; None for anything nested or computed."""
    opening = closing - 1
    while opening >= 0 and tokens[opening].text not in {"{", "}"}:
        opening -= 1
    if _text(tokens, opening - 1) not in {"const", "let", "var"} or _text(tokens, opening) != "{":
        return None
    keys: list[str] = []
    at = opening + 1
    while at < closing:
        key, after = tokens[at], _text(tokens, at + 1)
        if key.kind not in {"name", "text"} or after not in {",", ":", "}"}:
            return None
        keys.append(key.text)
        at += 2 if after != ":" else 4
        if after == ":" and (_at(tokens, at - 2).kind != "name" or _text(tokens, at - 1) not in {",", "}"}):
            return None
    return keys


def _at(tokens: list[Token], at: int) -> Token:
    return tokens[at] if 0 <= at < len(tokens) else Token("end", "", 0)


def _text(tokens: list[Token], at: int) -> str:
    """The text of a sign or name; nothing for other tokens, whose text may look like one."""
    token = _at(tokens, at)
    return token.text if token.kind in {"sign", "name"} else f"<{token.kind}>" if token.kind != "end" else ""


def _tokens(source: str, line: int = 1) -> Iterator[Token]:
    at, before = 0, Token("end", "", 0)
    while at < len(source):
        if space := _SPACE.match(source, at):
            line += _lines(space[0])
            at = space.end()
            continue
        token, end = _token(source, at, line, before)
        if token.kind == "template":
            # what stands in `${...}` is code, which may read `data`
            yield from _holes(source[at + 1 : end - 1], line)
        line += _lines(source[at:end])
        at, before = end, token
        yield token


def _lines(text: str) -> int:
    return text.count("\n")


def _token(source: str, at: int, line: int, before: Token) -> tuple[Token, int]:
    """The token that begins here, and the place after it."""
    sign = source[at]
    if sign == "`":
        return Token("template", "", line), _template_end(source, at)
    if sign in "'\"" and (found := _STRING.match(source, at)):
        return Token("text", _ESCAPE.sub(_unescaped, found[0][1:-1]), line), found.end()
    if sign == "/" and _may_be_regex(before) and (found := _REGEX.match(source, at)):
        return Token("regex", "", line), found.end()
    for kind, pattern in _PLAIN:
        if found := pattern.match(source, at):
            return Token(kind, found[0] if kind != "number" else "", line), found.end()
    return Token("sign", sign, line), at + 1


def _may_be_regex(before: Token) -> bool:
    if before.kind == "name":
        return before.text in _BEFORE_REGEX
    return before.kind in {"sign", "end"} and before.text not in _CLOSING


def _unescaped(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape.strip("ux{}"), 16)
        return chr(code) if code <= _LAST_CHARACTER else ""
    return _ESCAPES.get(escape, escape)


def _template_end(source: str, start: int) -> int:
    """The place after the backtick that closes the template."""
    at = start + 1
    while at < len(source):
        if source[at] == "\\":
            at += 2
        elif source[at] == "`":
            return at + 1
        elif source.startswith("${", at):
            at = _hole_end(source, at + 2)
        else:
            at += 1
    return len(source)


def _hole_end(source: str, at: int) -> int:
    """The place after the brace that closes a hole which begins here."""
    depth, before = 1, Token("sign", "{", 0)
    while at < len(source) and depth:
        if space := _SPACE.match(source, at):
            at = space.end()
            continue
        before, at = _token(source, at, 0, before)
        if before.kind == "sign":
            depth += (before.text == "{") - (before.text == "}")
    return at


def _holes(inner: str, line: int) -> Iterator[Token]:
    at = 0
    while (start := inner.find("${", at)) >= 0:
        escaped = len(inner[:start]) - len(inner[:start].rstrip("\\"))
        if escaped % 2:
            at = start + 2
            continue
        end = _hole_end(inner, start + 2)
        yield Token("sign", "(", line)
        yield from _tokens(inner[start + 2 : end - 1], line + _lines(inner[:start]))
        yield Token("sign", ")", line)
        at = end
