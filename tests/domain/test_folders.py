import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.errors import Invalid
from storage.domain.folders import join_folder_path, split_folder_path


@given(st.lists(st.text(min_size=1, max_size=8) | st.text(alphabet=".\\a", min_size=1), min_size=1))
def test_a_path_leads_back_to_its_names(names: list[str]) -> None:
    assert split_folder_path(join_folder_path(names)) == tuple(names)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a", ("a",)),
        ("a.b c", ("a", "b c")),
        (r"v1\.0.notes", ("v1.0", "notes")),
        (r"a\b", (r"a\b",)),
        (r"a\\.b", ("a\\", "b")),
    ],
)
def test_a_dot_splits_unless_escaped(path: str, names: tuple[str, ...]) -> None:
    assert split_folder_path(path) == names


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b"])
def test_an_empty_name_is_refused(path: str) -> None:
    with pytest.raises(Invalid):
        split_folder_path(path)
