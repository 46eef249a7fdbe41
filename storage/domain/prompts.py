"""Prompts of the registry: what is published, what a version and a label are, what a log links to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ExternalId:
    """What another system calls an entity."""

    source: str
    external_id: str


@dataclass(frozen=True, slots=True)
class Publication:
    """What E4 is asked to publish; None keeps what the prompt has."""

    prompt_name: str
    blueprint: Mapping[str, Any]
    tags: tuple[str, ...] | None = None
    folder_id: int | None = None
    metadata: Mapping[str, Any] | None = None
    commit_message: str | None = None
    release_labels: tuple[str, ...] = ()
    external_ids: tuple[ExternalId, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    id: int
    workspace_id: int
    name: str
    folder_id: int | None
    tags: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """One published version with the prompt that it belongs to."""

    prompt: Prompt
    id: int
    number: int
    blueprint: dict[str, Any]
    metadata: dict[str, Any] | None
    commit_message: str | None
    created_at: datetime
    release_labels: tuple[str, ...]
    external_ids: tuple[ExternalId, ...]


@dataclass(frozen=True, slots=True)
class ReleaseLabel:
    """A name that points at one version of a prompt, and can be moved (2.13)."""

    id: int
    name: str
    prompt_id: int
    prompt_version_id: int
    prompt_version_number: int


@dataclass(frozen=True, slots=True)
class PromptLink:
    """What a logged request refers to; without a version number it links to the prompt alone."""

    prompt_id: int
    prompt_name: str
    prompt_version_id: int | None
    version_number: int | None


def find_prompt_id_in(identifier: str) -> int | None:
    """Read an identifier of a path as an id; None when it can only be a name."""
    return _find_number_in(identifier)


def find_version_number_in(wanted: str) -> int | None:
    """Read what names a version as its number; None when it can only be a label."""
    return _find_number_in(wanted)


def _find_number_in(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text[:20])
    return number if number <= MAX_INTEGER else None
