"""code: each language over the rows of a chunk, by the names that the code was written with."""

from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from pipelines.columns.code import KIND
from pipelines.columns.protocol import RunContext
from pipelines.columns.values import to_list, values_of
from storage.domain.column_types.binding import Binder, CodeReads
from storage.domain.column_types.code import bind
from storage.domain.columns import Column
from storage.domain.errors import InvalidConfig
from storage.domain.results import Chunk
from storage.engine.sandbox.pool import Pool
from storage.sandbox import engine_of, read_code
from tests.pipelines.columns.test_templates import Workspace


@pytest.fixture(scope="module")
def workspace() -> Iterator[Any]:
    pool = Pool()
    yield cast("Any", Workspace(pool))
    pool.close()


TITLES = {"Answer": UUID(int=1), "Expected": UUID(int=2)}


def column_of(workspace: Any, language: str, code: str) -> Column:
    """A column as it is when it has been saved: bound by what its code reads."""

    def read(language: str, code: str) -> CodeReads:
        return read_code(workspace, workspace, language, code)

    binder = Binder(lambda name: (str(TITLES[name]), name) if name in TITLES else None, read_code=read)
    config = bind({"code": code, "language": language}, binder)
    return Column(1, uuid4(), "Code", "code", config, 1, is_output_column=False, dependencies=binder.edges)


def computed(workspace: Any, column: Column, *rows: tuple[Any, Any]) -> tuple[list[Any], dict[int, str]]:
    chunk = Chunk(
        range(len(rows)),
        range(len(rows)),
        {one: values_of([row[at] for row in rows]) for at, one in enumerate(TITLES.values())},
    )
    context = RunContext(workspace, workspace, column, operation=cast("Any", None))
    with KIND.open(context) as runner:
        (answers,) = runner.compute(chunk)
    return to_list(answers.values), {at: error.code for at, error in answers.errors.items()}


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("PYTHON", "return data['Answer'].strip() == data.Expected"),
        ("JAVASCRIPT", "return data.Answer.trim() === data['Expected']"),
        ("SQL", 'trim("Answer") = Expected'),
    ],
)
def test_each_language_computes_cells(workspace: Any, language: str, code: str) -> None:
    column = column_of(workspace, language, code)
    assert [edge["column_id"] for edge in column.dependencies] == [str(one) for one in TITLES.values()]
    values, errors = computed(workspace, column, (" a", "a"), ("b", "a"))
    assert (values, errors) == ([True, False], {})
    assert KIND.engine(column) == engine_of(language)


def test_values_keep_their_types_and_errors_their_rows(workspace: Any) -> None:
    code = "if data.Answer == 2: raise ValueError\nreturn [data.Answer, data.Expected]"
    values, errors = computed(
        workspace, column_of(workspace, "PYTHON", code), (1, {"k": 1.5}), (2, None), (3, "x")
    )
    assert values == [[1, {"k": 1.5}], None, [3, "x"]]
    assert errors == {1: "code_error"}


@pytest.mark.parametrize(
    ("language", "code", "words"),
    [
        ("PYTHON", "return data.\n", "config.code: line 1"),
        ("JAVASCRIPT", "return data.a +", "config.code: line"),
        ("SQL", "sum(Answer)", "aggregates"),
        ("SQL", '"Gone"', "config.code: there is no column 'Gone'"),
        ("PYTHON", "return list(data)", "config.sources: is required"),
        ("JAVASCRIPT", "return Object.keys(data)", "config.sources: is required"),
    ],
)
def test_what_cannot_be_saved_is_said(workspace: Any, language: str, code: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        column_of(workspace, language, code)
    assert words in refused.value.message


def test_a_renamed_column_goes_on_under_the_name_in_the_code(workspace: Any) -> None:
    column = column_of(workspace, "SQL", "upper(Answer)")
    assert computed(workspace, column, ("a", None)) == (["A"], {})
