"""What is said of a logged request after it was logged: a patch of its fields, merged where it is read.

A patch is a part of the fields of a log: `metadata` (its keys are added to, or replace, those of the log) and
the link to a prompt (`prompt_id`, `prompt_name`, `prompt_version_number`, which stand together, and
`prompt_input_variables`), which replace those of the log.
"""

import json
from collections.abc import Mapping
from typing import Any

from storage.domain.errors import invalid
from storage.domain.prompts import PromptLink

MAX_PATCH_BYTES = 1_048_576
GROUP_KEY = "group_id"
"""The key of the metadata that names the group of a request."""

Patch = dict[str, Any]


def metadata_patch(metadata: Mapping[str, str]) -> Patch:
    return {"metadata": dict(metadata)}


def group_patch(group_id: int) -> Patch:
    return metadata_patch({GROUP_KEY: str(group_id)})


def prompt_patch(link: PromptLink, input_variables: Mapping[str, Any] | None) -> Patch:
    patch: Patch = {
        "prompt_id": link.prompt_id,
        "prompt_name": link.prompt_name,
        "prompt_version_number": link.version_number,
    }
    if input_variables is not None:
        patch["prompt_input_variables"] = dict(input_variables)
    return patch


def merge_patches(old: Mapping[str, Any], new: Mapping[str, Any]) -> Patch:
    """Return one patch that does what both do, one after the other.

    Raises:
        Invalid: all that was said of the request is too large.
    """
    merged = apply_patch(old, new)
    if len(json.dumps(merged, ensure_ascii=False).encode()) > MAX_PATCH_BYTES:
        raise invalid("request_id", f"what is tracked of one request is over {MAX_PATCH_BYTES} bytes")
    return merged


def apply_patch(fields: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a log, or an older patch, as a patch says; applying it again changes nothing."""
    merged = {**fields, **patch}
    if "metadata" in patch and "metadata" in fields:
        merged["metadata"] = {**fields["metadata"], **patch["metadata"]}
    return merged
