"""The prompt registry: publish (E4), list labels (E5), read as published, compare, edit, delete.

Names hold slashes: fixed suffixes come first, so a prompt whose name ends in `/labels` or `/diff` is read by
its id.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.prompt_diffs import DiffAnswer
from api.schemas.tables import Done
from api.schemas.templates import (
    LabelEntry,
    LabelList,
    PromptEdit,
    PublishBody,
    TemplatePage,
    TemplateVersion,
)
from storage import prompt_diffs, prompt_edits, templates
from storage.domain.errors import Conflict, DependencyCycle, InvalidConfig, NotFound
from storage.domain.keys import Principal
from storage.domain.prompts import MAX_INTEGER
from storage.store import Store


def _check_prompt(store: Store, who: Principal, path: Mapping[str, str]) -> None:
    templates.check_prompt(store, who, path["identifier"])


_WHICH = "Number of a version, else a release label; `label:7` is the label 7."

router = guarded_router(tags=["prompt templates"])


@router.post(
    "/rest/prompt-templates",
    status_code=201,
    summary="Publish a prompt template",
    description="Makes a prompt, or the next version of the one that has the name. Labels are created or "
    "moved to the new version; tags and folder keep their value where absent or null. `@@@name@@@` in a text "
    "includes the latest version of a completion template, `@@@name|version_number:3@@@` and "
    "`@@@name|label:prod@@@` the one that is named.",
    responses=errors(Conflict, DependencyCycle, InvalidConfig, NotFound),
)
@needs("write:prompt")
def publish(store: OpenStore, who: Who, body: PublishBody) -> TemplateVersion:
    check_workspace_id(who, body.prompt_template.workspace_id)
    return TemplateVersion.of(templates.publish(store, who, body.publication()))


@router.get("/prompt-templates", summary="List prompt templates")
@needs("read")
def list_templates(
    store: OpenStore,
    who: Who,
    page: Annotated[int, Query(ge=1, le=1_000_000_000)] = 1,
    per_page: Annotated[int, Query(ge=1, le=100)] = 30,
    name: Annotated[str | None, Query(description="A part of the name, in any case.")] = None,
    label: Annotated[str | None, Query(description="Only prompts that have this release label.")] = None,
    tags: Annotated[list[str] | None, Query(description="Only prompts with all of these tags.")] = None,
) -> TemplatePage:
    found, total = templates.list_templates(
        store, who, page=page, per_page=per_page, name=name, label=label, tags=tags or ()
    )
    items = [TemplateVersion.of(version) for version in found]
    return TemplatePage(items=items, page=page, per_page=per_page, total=total, pages=-(-total // per_page))


@router.get("/prompt-templates/{identifier:path}/labels", summary="List the release labels of a prompt")
@needs("read", path=_check_prompt)
def list_labels(store: OpenStore, who: Who, identifier: str) -> LabelList:
    labels = templates.list_release_labels(store, who, identifier)
    return LabelList(release_labels=[LabelEntry.of(label) for label in labels])


@router.get("/prompt-templates/{identifier:path}/diff", summary="Compare two versions of a prompt")
@needs("read", path=_check_prompt)
def diff_versions(
    store: OpenStore,
    who: Who,
    identifier: str,
    before: Annotated[str, Query(alias="from", min_length=1, max_length=600, description=_WHICH)],
    after: Annotated[
        str | None,
        Query(alias="to", min_length=1, max_length=600, description=f"{_WHICH} Absent: the latest."),
    ] = None,
) -> DiffAnswer:
    """Messages and blocks that were added, removed or changed, texts by line; settings, metadata, variables.

    Versions are compared as published: snippets are not resolved.
    """
    return DiffAnswer.of(prompt_diffs.diff_prompt(store, who, identifier, before=before, after=after))


@router.get(
    "/prompt-templates/{identifier:path}",
    summary="Read a prompt template as published",
    responses=errors(DependencyCycle, InvalidConfig),
)
@needs("read", path=_check_prompt)
def get_template(
    store: OpenStore,
    who: Who,
    identifier: str,
    version: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
    label: Annotated[str | None, Query(min_length=1, max_length=512)] = None,
    *,
    resolve_snippets: Annotated[
        bool, Query(description="Put snippets in the place of `@@@name@@@`, as they are now.")
    ] = False,
) -> TemplateVersion:
    found = templates.get_template(
        store, who, identifier, number=version, label=label, resolve_snippets=resolve_snippets
    )
    return TemplateVersion.of(found)


@router.patch(
    "/prompt-templates/{identifier:path}",
    summary="Rename, tag or move a prompt",
    responses=errors(Conflict, NotFound),
)
@needs("write:prompt", path=_check_prompt)
def edit_prompt(store: OpenStore, who: Who, identifier: str, body: PromptEdit) -> TemplateVersion:
    """Answers the latest version; versions themselves never change.

    A prompt that versions in use of others include by its name is not renamed: 409 names them.
    """
    check_workspace_id(who, body.workspace_id)
    return TemplateVersion.of(prompt_edits.edit_prompt(store, who, identifier, body.changes()))


@router.delete("/prompt-templates/{identifier:path}", summary="Delete a prompt", responses=errors(Conflict))
@needs("write:prompt", path=_check_prompt)
def delete_prompt(store: OpenStore, who: Who, identifier: str) -> Done:
    """Its versions, labels and external ids go with it; logs keep the id, name and version they have.

    A prompt that versions in use of others include as a snippet stays: 409 names them. The name may be used
    again, by a prompt of another id.
    """
    prompt_edits.delete_prompt(store, who, identifier)
    return Done(message="Prompt deleted")
