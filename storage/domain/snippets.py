"""Snippets: completion templates that other templates include by `@@@name@@@`, expanded before rendering.

A reference names the latest version; `@@@name|version_number:3@@@` and `@@@name|label:prod@@@` pin one. An
`@` in the place of the `|` means the same, as existing templates spell it. A text of an input variable is
never expanded. What a template and its snippets come to is bounded: depth, number and size.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storage.domain.blueprints import COMPLETION, Blueprint, Text, texts_of, with_texts
from storage.domain.errors import DependencyCycle, InvalidConfig
from storage.domain.prompts import MAX_INTEGER

MAX_DEPTH = 10
MAX_SNIPPETS = 100
MAX_EXPANDED_BYTES = 1_048_576
# Work that leaves no text: a megabyte of references to an empty snippet, in each of a hundred snippets.
MAX_INCLUSIONS = 10_000
MAX_SOURCE = 2 * MAX_EXPANDED_BYTES

MARK = "@@@"
# A name of 512 characters and a label of as many, with what stands between; no text spans lines.
_REFERENCE = re.compile(r"@@@(?!@)([^\n]{1,1100}?)@@@")
_PINNED = re.compile(r"(.+)[|@](label|version_number):(.+)", re.DOTALL)
_BRACE = re.compile(r"[{}]")


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands between the marks: a name, and the version of it that is meant."""

    name: str
    number: int | None = None
    label: str | None = None

    def __str__(self) -> str:
        if self.number is not None:
            return f"{self.name}|version_number:{self.number}"
        return self.name if self.label is None else f"{self.name}|label:{self.label}"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A version that is included: its text, as its text blocks stand one after another."""

    version_id: int
    prompt_id: int
    name: str
    number: int
    text: str
    template_format: str


Library = Mapping[Reference, Snippet]
"""Every snippet that a template reaches."""


def references_in(text: str) -> tuple[Reference, ...]:
    """The references of a text, each once, in order of first sight.

    Raises:
        InvalidConfig: one asks for a version that is no number.
    """
    if MARK not in text:
        return ()
    return tuple(dict.fromkeys(_reference(found[1]) for found in _REFERENCE.finditer(text)))


def references_of(blueprint: Mapping[str, Any]) -> tuple[Reference, ...]:
    """The references of all texts of a blueprint; raises as `references_in`."""
    every = (reference for text in texts_of(blueprint) for reference in references_in(text.text))
    return tuple(dict.fromkeys(every))


def snippet_text(name: str, blueprint: Mapping[str, Any]) -> str:
    """The text that stands for a version where it is included.

    Raises:
        InvalidConfig: it is no completion template, or holds blocks that are no text.
    """
    if blueprint["type"] != COMPLETION:
        raise InvalidConfig(
            f"The snippet {name} is a {blueprint['type']} template; only completion templates can be included"
        )
    blocks = blueprint.get("content") or []
    texts = [text.text for text in texts_of(blueprint)]
    if len(texts) < len(blocks):
        raise InvalidConfig(f"The snippet {name} holds blocks that are no text, and cannot be included")
    return "".join(texts)


def expand_blueprint(blueprint: Blueprint, library: Library, *, name: str, version_id: int) -> Blueprint:
    """Return the blueprint with every reference replaced; name and version id are the template's own.

    Raises:
        InvalidConfig: what a text comes to is too deep, too large, or in two languages.
        DependencyCycle: the template or a snippet includes itself, directly or not; names the path.
    """
    if not library:
        return blueprint
    expansion = _Expansion(library, name, version_id)
    expanded = iter([expansion.of_text(text) for text in texts_of(blueprint)])
    return with_texts(blueprint, lambda _: next(expanded))


@dataclass(frozen=True, slots=True)
class _Expanded:
    """What a text comes to: its size in bytes, and how many snippets lie below each other in it."""

    text: str
    size: int
    depth: int


class _Expansion:
    """One template's expansion: a snippet is expanded once, and bytes are counted before they are joined."""

    def __init__(self, library: Library, name: str, version_id: int) -> None:
        self._library = library
        self._name = name
        self._version_id = version_id
        self._done: dict[int, _Expanded] = {}
        self._total = 0
        self._inclusions = 0

    def of_text(self, text: Text) -> str:
        """Return a text of the template itself."""
        expanded = self._joined(text.text, text.template_format, text.where, ())
        self._total += expanded.size
        if self._total > MAX_EXPANDED_BYTES:
            raise _too_large(text.where)
        return expanded.text

    def _joined(self, text: str, language: str, where: str, above: tuple[Snippet, ...]) -> _Expanded:
        parts: list[str] = []
        size = depth = at = 0
        for found in _REFERENCE.finditer(text):
            own = text[at : found.start()]
            snippet = self._library[_reference(found[1])]
            self._inclusions += 1
            if self._inclusions > MAX_INCLUSIONS:
                raise InvalidConfig(f"{where}: snippets are included more than {MAX_INCLUSIONS} times")
            included = self._expanded(snippet, where, above)
            _check_language(snippet, included.text, language, where)
            size += len(own.encode()) + included.size
            if size > MAX_EXPANDED_BYTES:
                raise _too_large(where)
            depth = max(depth, included.depth)
            parts += (own, included.text)
            at = found.end()
        rest = text[at:]
        return _Expanded("".join([*parts, rest]), size + len(rest.encode()), depth)

    def _expanded(self, snippet: Snippet, where: str, above: tuple[Snippet, ...]) -> _Expanded:
        path = (*above, snippet)
        if snippet.version_id in {self._version_id, *(one.version_id for one in above)}:
            raise DependencyCycle(f"{where}: a snippet would include itself: {self._told(path)}")
        done = self._done.get(snippet.version_id)
        if done is None:
            # deeper than this nobody looks, whatever lies below
            self._check_depth(len(path), where, path)
            inner = self._joined(snippet.text, snippet.template_format, where, path)
            done = self._done[snippet.version_id] = _Expanded(inner.text, inner.size, inner.depth + 1)
        self._check_depth(len(above) + done.depth, where, path)
        return done

    def _check_depth(self, depth: int, where: str, path: Iterable[Snippet]) -> None:
        if depth > MAX_DEPTH:
            raise InvalidConfig(f"{where}: snippets go {MAX_DEPTH} deep at most: {self._told(path)}")

    def _told(self, path: Iterable[Snippet]) -> str:
        return " -> ".join([self._name, *(snippet.name for snippet in path)])


def load_library(
    blueprint: Mapping[str, Any], find: Callable[[Reference], Snippet | None]
) -> dict[Reference, Snippet]:
    """Find every snippet that a blueprint reaches; `find` is asked once for each reference.

    Raises:
        InvalidConfig: one is unknown or cannot be included, or there are too many.
    """
    library: dict[Reference, Snippet] = {}
    source = 0
    wanted = list(references_of(blueprint))
    while wanted:
        reference = wanted.pop()
        if reference in library:
            continue
        if len(library) >= MAX_SNIPPETS:
            raise InvalidConfig(f"A template includes at most {MAX_SNIPPETS} snippets, those of snippets too")
        snippet = find(reference)
        if snippet is None:
            raise InvalidConfig(
                f"No snippet is found for {MARK}{str(reference)[:200]}{MARK}: {_advice(reference)}"
            )
        library[reference] = snippet
        source += len(snippet.text)
        if source > MAX_SOURCE:
            raise InvalidConfig(f"The snippets of a template have at most {MAX_SOURCE} characters together")
        wanted += references_in(snippet.text)
    return library


def _advice(reference: Reference) -> str:
    if reference.number is not None:
        return "the prompt has no such version, or there is no such prompt"
    if reference.label is not None:
        return "the prompt has no such release label, or there is no such prompt"
    return "no prompt has this name"


def _reference(inside: str) -> Reference:
    pinned = _PINNED.fullmatch(inside)
    if pinned is None:
        return Reference(inside)
    name, kind, value = pinned.groups()
    if kind == "label":
        return Reference(name, label=value)
    if not (value.isascii() and value.isdigit()) or not 0 < int(value[:20]) <= MAX_INTEGER:
        raise InvalidConfig(f"{MARK}{inside[:200]}{MARK}: a version_number is a whole number from 1")
    return Reference(name, number=int(value))


def _check_language(snippet: Snippet, included: str, language: str, where: str) -> None:
    # a text without braces means the same in both
    if snippet.template_format != language and _BRACE.search(included):
        raise InvalidConfig(
            f"{where}: the snippet {snippet.name} is written in {snippet.template_format}, "
            f"and the text that includes it in {language}"
        )


def _too_large(where: str) -> InvalidConfig:
    return InvalidConfig(f"{where}: with its snippets the text is over {MAX_EXPANDED_BYTES} bytes")
