"""Manifest arithmetic equals that of a plain list of row numbers."""

import json
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain.cells import COMPLETED, CellState
from storage.domain.manifests import Fill, Manifest, Part, SegmentRef, Source, Stored
from storage.engine.manifest_codec import decode_manifest, encode_manifest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Parts with gaps between their row numbers, as deletions leave them."""
    sizes = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=6))
    sources = st.one_of(
        st.builds(
            Fill,
            st.sampled_from(["", None, 1, 1.0, True]),
            st.sampled_from([NOW, LATER, None]),
            st.sampled_from([COMPLETED, CellState("stale")]),
        ),
        st.builds(
            Stored,
            st.sampled_from(
                [SegmentRef("a", ("text",) * 9, NOW), SegmentRef("b", ("integer", *("json",) * 8), LATER)]
            ),
            st.integers(0, 8),
            st.integers(0, 3),
            st.sampled_from([None, None, 2]),
        ),
    )
    parts, after = [], 0
    for gap, count in sizes:
        columns = draw(st.dictionaries(st.integers(1, 12), sources, max_size=8))
        parts.append(Part(after + gap, count, columns, draw(st.sampled_from([NOW, LATER]))))
        after += gap + count
    return Manifest(tuple(parts))


def cells(manifest: Manifest) -> dict[tuple[int, int], Source]:
    """Every cell, with a stored source counted on to its row."""
    found: dict[tuple[int, int], Source] = {}
    for part in manifest.parts:
        for no, source in part.columns.items():
            for at in range(part.count):
                if isinstance(source, Stored):
                    found[part.first_row_no + at, no] = replace(source, start=source.start + part.offset + at)
                else:
                    found[part.first_row_no + at, no] = source
    return found


def numbers(manifest: Manifest) -> list[int]:
    return [part.first_row_no + at for part in manifest.parts for at in range(part.count)]


@given(manifests(), st.integers(0, 30), st.integers(0, 30))
def test_spans_are_a_slice_of_the_rows(manifest: Manifest, start: int, count: int) -> None:
    spans = list(manifest.spans(start, count))
    walked = [span.first_row_no + at for span in spans for at in range(span.count)]
    assert walked == numbers(manifest)[start : start + count]
    assert all(span.offset + span.count <= span.part.count for span in spans)


@given(manifests(), st.integers(0, 40))
def test_row_numbers_are_found_where_they_stand(manifest: Manifest, row_no: int) -> None:
    rows = numbers(manifest)
    assert manifest.row_count == len(rows)
    assert manifest.find_index(row_no) == (rows.index(row_no) if row_no in rows else None)
    assert manifest.index_from(row_no) == sum(one < row_no for one in rows)


@given(manifests())
def test_a_manifest_comes_back_from_its_bytes(manifest: Manifest) -> None:
    again = decode_manifest(encode_manifest(manifest))
    assert again == manifest
    kinds = [
        [type(source.value) for source in part.columns.values() if isinstance(source, Fill)]
        for part in (*manifest.parts, *again.parts)
    ]
    half = len(manifest.parts)
    assert [sorted(map(str, k)) for k in kinds[:half]] == [sorted(map(str, k)) for k in kinds[half:]]


def test_thousands_of_imported_columns_take_little_room() -> None:
    refs = [SegmentRef(f"sheets/s/{at}.parquet", ("text",) * 64, NOW) for at in range(79)]
    columns = {no: Stored(refs[no // 64], no % 64, 0) for no in range(5000)}
    assert len(encode_manifest(Manifest((Part(1, 1_000_000, columns, NOW),)))) < 4000


@given(manifests(), st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)))
def test_deleted_rows_are_gone_and_the_others_stay_as_they_were(
    manifest: Manifest, first: list[int], then: list[int]
) -> None:
    left = manifest.without_rows(first).without_rows(then)
    gone = {*first, *then}
    assert numbers(left) == [row for row in numbers(manifest) if row not in gone]
    assert cells(left) == {at: one for at, one in cells(manifest).items() if at[0] not in gone}
    assert decode_manifest(encode_manifest(left)) == left


@given(manifests(), st.lists(st.integers(0, 40)))
def test_a_column_is_put_and_taken_alone(manifest: Manifest, gone: list[int]) -> None:
    manifest = manifest.without_rows(gone)
    others = {at: one for at, one in cells(manifest).items() if at[1] != 3}
    ref = SegmentRef("new", ("text",), NOW)
    stored = manifest.with_column(3, lambda part: Stored(ref, 0, part.first_row_no))
    new = {(row, 3): Stored(ref, 0, row) for row in numbers(manifest)}
    assert cells(stored) == {**others, **new}
    assert cells(stored.with_column(3, lambda _: None)) == others
    filled = manifest.with_fill(3, Fill(1))
    assert cells(filled) == {**others, **dict.fromkeys(new, Fill(1))}
    assert cells(filled.without_columns([3])) == others


def test_scattered_deletes_take_little_room() -> None:
    refs = [SegmentRef(f"sheets/s/{at}.parquet", ("text",) * 64, NOW) for at in range(16)]
    columns = {no: Stored(refs[no // 64], no % 64, 0) for no in range(999)}
    manifest = Manifest((Part(1, 10_000, columns, NOW),)).without_rows(range(1, 10_000, 3))
    assert (manifest.row_count, len(manifest.parts)) == (6_667, 3_333)
    assert len(encode_manifest(manifest)) < 40_000


def test_the_first_format_is_still_read() -> None:
    at = NOW.isoformat()
    sources = [{"key": "a", "encodings": ["text", "json"], "at": at}, {"fill": "", "at": at}]
    parts = [[1, 5, at, [[7, 2, 0, 0, 3], [9, 1, 1, 0, 0]]]]
    spelled = json.dumps({"format": 1, "sources": sources, "parts": parts}).encode()
    ref = SegmentRef("a", ("text", "json"), NOW)
    columns = {7: Stored(ref, 0, 3), 8: Stored(ref, 1, 3), 9: Fill("", NOW)}
    assert decode_manifest(zlib.compress(spelled)) == Manifest((Part(1, 5, columns, NOW),))


def test_rows_out_of_order_are_no_manifest() -> None:
    parts = [Part(first, 2, {}, NOW) for first in accumulate([5, -1])]
    with pytest.raises(ValueError, match="order"):
        Manifest(tuple(parts))
