"""The prompt registry: publish (E4), list labels (E5), read raw or rendered.

Names hold slashes: fixed suffixes come first, so a prompt whose name ends in `/labels` is read by its id.
"""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query

from api.deps import OpenStore, Who
from api.openapi import errors
from api.routing import guarded_router, needs
from api.schemas.base import check_workspace_id
from api.schemas.templates import (
    LabelEntry,
    LabelList,
    PublishBody,
    RenderBody,
    RenderedTemplate,
    TemplatePage,
    TemplateVersion,
)
from storage import templates
from storage.domain.errors import Conflict, InvalidConfig, NotFound
from storage.domain.keys import Principal
from storage.domain.prompts import MAX_INTEGER
from storage.store import Store


def _check_prompt(store: Store, who: Principal, path: Mapping[str, str]) -> None:
    templates.check_prompt(store, who, path["identifier"])


router = guarded_router(tags=["prompt templates"])


@router.post(
    "/rest/prompt-templates",
    status_code=201,
    summary="Publish a prompt template",
    description="Makes a prompt, or the next version of the one that has the name. Labels are created or "
    "moved to the new version; tags and folder keep their value where absent or null.",
    responses=errors(Conflict, InvalidConfig, NotFound),
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


@router.get("/prompt-templates/{identifier:path}", summary="Read a prompt template as published")
@needs("read", path=_check_prompt)
def get_template(
    store: OpenStore,
    who: Who,
    identifier: str,
    version: Annotated[int | None, Query(ge=1, le=MAX_INTEGER)] = None,
    label: Annotated[str | None, Query(min_length=1, max_length=512)] = None,
) -> TemplateVersion:
    return TemplateVersion.of(templates.get_template(store, who, identifier, number=version, label=label))


@router.post(
    "/prompt-templates/{identifier:path}",
    summary="Read a prompt template, its variables filled in",
    responses=errors(InvalidConfig),
)
@needs("read", path=_check_prompt)
def render_template(
    store: OpenStore, who: Who, identifier: str, body: RenderBody | None = None
) -> RenderedTemplate:
    wanted = body or RenderBody()
    check_workspace_id(who, wanted.workspace_id)
    rendered = templates.render(
        store,
        who,
        identifier,
        number=wanted.version,
        label=wanted.label,
        values=wanted.values,
        provider=wanted.provider,
        model=wanted.model,
    )
    return RenderedTemplate.of_rendered(rendered)
