"""Segments give every JSON value back as it was, from anywhere in the file."""

from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.domain.encodings import encoding_of
from storage.domain.manifests import SegmentRef
from storage.engine.segments import ROWS_PER_GROUP, segment_key, write_segment
from storage.store import Store

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALAR = st.none() | st.booleans() | st.integers() | FINITE | TEXT
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
KINDS = [TEXT, st.integers(-(2**63), 2**63 - 1), st.integers(), FINITE, st.booleans(), JSON]
COLUMNS = st.one_of([st.lists(st.none() | kind, min_size=3, max_size=3) for kind in KINDS])


def typed(values: list[Any]) -> list[tuple[type, Any]]:
    return [(type(value), repr(value)) for value in values]


@given(st.lists(COLUMNS, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_value_comes_back_with_its_type(store: Store, columns: list[list[Any]]) -> None:
    fields = [(at, encoding_of(values), values) for at, values in enumerate(columns)]
    written = write_segment(store.data, segment_key(uuid4(), uuid4()), 0, fields)
    ref = SegmentRef(written.key, tuple(one.encoding for one in written.fields), store.now())
    found = store.segments.read(ref, range(len(columns)), 0, 3)
    assert [typed(values) for values in found] == [typed(values) for values in columns]


def test_a_read_takes_only_the_groups_that_hold_its_rows(store: Store) -> None:
    count = 2 * ROWS_PER_GROUP + 10
    values = [str(n) for n in range(count)]
    written = write_segment(store.data, segment_key(uuid4(), uuid4()), 0, [(0, "text", values)])
    ref = SegmentRef(written.key, ("text",), store.now())
    footer = pq.read_metadata(store.data.path(written.key))
    assert footer.num_row_groups == 3
    for start, length in [
        (0, 1),
        (ROWS_PER_GROUP - 1, 2),
        (ROWS_PER_GROUP, 1),
        (count - 1, 1),
        (5, count - 5),
    ]:
        assert store.segments.read(ref, [0], start, length) == [values[start : start + length]]
