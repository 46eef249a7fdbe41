"""The tree of folders against a plain model of it: what is allowed, what is refused, what a path names."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage import folders
from storage.domain.entities import EntityRef, EntityType
from storage.domain.errors import Conflict, Invalid, NotFound, PromptlakeError
from storage.domain.folders import FolderChange, join_folder_path
from storage.domain.keys import Principal
from storage.entities import move_entities
from storage.settings import Settings
from storage.store import Store, opened
from storage.workspaces import bootstrap, create_key, create_workspace, find_key

DEEPEST = 3
Tree = dict[int, tuple[int | None, str]]
UNKNOWN = 99
names = st.sampled_from(["a", "b.c", "d\\", "e", "f", "g", "h"])
# which of the folders there are, counted round and round; None is the root
some = st.sampled_from([*range(12), UNKNOWN])
place = st.none() | some
creation = st.tuples(st.just("create"), names, place)
steps = st.one_of(
    creation,
    creation,
    st.tuples(st.just("rename"), some, names),
    st.tuples(st.just("change"), some, names, place),
    st.tuples(st.just("move"), st.lists(some, min_size=1, max_size=3), place),
    st.tuples(st.just("delete"), some),
)


def depth(tree: Tree, folder: int | None) -> int:
    return 0 if folder is None else 1 + depth(tree, tree[folder][0])


def within(tree: Tree, folder: int | None, above: int) -> bool:
    return folder is not None and (folder == above or within(tree, tree[folder][0], above))


def planned(tree: Tree, after: Tree, moved: list[int], to: int | None) -> type[PromptlakeError] | None:
    """Why a tree may not become another, in the order in which reasons are given."""
    if any(folder not in tree for folder in [*moved, *([] if to is None else [to])]):
        return NotFound
    if any(within(tree, to, folder) for folder in moved):
        return Invalid
    if len(set(after.values())) < len(after):
        return Conflict
    return Invalid if any(depth(after, folder) > DEEPEST for folder in after) else None


def take(store: Store, who: Principal, tree: Tree, step: tuple) -> Tree:
    """Take a step in the store, and return the tree that the model says is then there."""
    known = sorted(tree)

    def folder(at: int | None) -> int | None:
        if at is None:
            return None
        return 10_000 if at == UNKNOWN or not known else known[at % len(known)]

    kind, *rest = step
    if kind == "create":
        name, at = rest
        to = folder(at)
        reason = NotFound if to is not None and to not in tree else None
        if reason is None and depth(tree, to) >= DEEPEST:
            reason = Invalid
        if reason is None and (to, name) in tree.values():
            reason = Conflict
        made = run(reason, lambda: folders.create_folder(store, who, name=name, parent_id=to))
        return tree if made is None else tree | {made.id: (to, name)}
    if kind == "delete":
        (at,) = rest
        gone = folder(at)
        reason = None if gone in tree else NotFound
        if reason is None and any(parent == gone for parent, _ in tree.values()):
            reason = Conflict
        run(reason, lambda: folders.delete_folder(store, who, gone))
        return tree if reason else {one: facts for one, facts in tree.items() if one != gone}
    if kind == "move":
        moved, to = [folder(at) for at in rest[0]], folder(rest[1])
        after = tree | {one: (to, tree[one][1]) for one in moved if one in tree}
        refs = [EntityRef(EntityType.FOLDER, one) for one in moved]
        reason = planned(tree, after, moved, to) if set(moved) <= set(tree) else NotFound
        run(reason, lambda: move_entities(store, who, refs, to))
        return tree if reason else after
    one, name = folder(rest[0]), rest[1]
    moves = kind == "change"
    to = folder(rest[2]) if moves else tree.get(one, (None, ""))[0]
    after = tree | {one: (to, name)}
    reason = planned(tree, after, [one], to) if after != tree else None
    run(
        reason,
        lambda: folders.update_folder(store, who, one, FolderChange(name, moves, to if moves else None)),
    )
    return tree if reason else after


def run(reason: type[PromptlakeError] | None, call):
    if reason is None:
        return call()
    with pytest.raises(reason) as raised:
        call()
    assert type(raised.value) is reason
    return None


@pytest.fixture(scope="module")
def store():
    with tempfile.TemporaryDirectory() as home, opened(Settings(home=Path(home)), durable=False) as store:
        bootstrap(store)
        yield store


@given(st.lists(creation, min_size=6, max_size=12), st.lists(steps, min_size=8, max_size=20))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_step_does_what_the_model_says(
    store: Store, monkeypatch: pytest.MonkeyPatch, first: list[tuple], then: list[tuple]
) -> None:
    monkeypatch.setattr("storage.folders.MAX_DEPTH", DEEPEST)
    workspace = create_workspace(store, f"w{store.new_id().hex}")
    facts = find_key(store, create_key(store, workspace=workspace.name)[1])
    assert facts is not None
    who = facts.principal
    tree: Tree = {}
    for step in [*first, *then]:
        tree = take(store, who, tree, step)
    for folder, (parent, name) in tree.items():
        found = folders.get_folder(store, who, folder)
        assert (found.parent_id, found.name) == (parent, name)
        way, above = [name], parent
        while above is not None:
            above, its_name = tree[above]
            way.insert(0, its_name)
        assert folders.resolve_folder_id(store, who, join_folder_path(way)) == folder
        assert len(way) <= DEEPEST
