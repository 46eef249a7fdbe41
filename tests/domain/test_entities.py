"""The order of a folder's contents: each entity has one place, and reading on from it misses nothing."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.entities import EntityType, kinds_asked_for, kinds_from, place_in_list

kinds = st.sampled_from(list(EntityType))
numbers = st.integers(1, 2**63 - 1)
everything = list(EntityType)


@given(st.tuples(kinds, numbers), st.tuples(kinds, numbers))
def test_places_are_ordered_by_kind_and_then_by_number(
    one: tuple[EntityType, int], other: tuple[EntityType, int]
) -> None:
    def key(entity: tuple[EntityType, int]) -> tuple[int, int]:
        return everything.index(entity[0]), entity[1]

    assert (place_in_list(*one) < place_in_list(*other)) == (key(one) < key(other))


@given(kinds, numbers, st.booleans(), st.sets(kinds))
def test_what_lies_beyond_a_place_is_read_on_from_it(
    kind: EntityType, number: int, descending: bool, wanted: set[EntityType]
) -> None:
    way = everything[::-1] if descending else everything
    beyond = [one for one in way[way.index(kind) :] if one in wanted]
    found = kinds_from(place_in_list(kind, number), wanted, descending=descending)
    assert found == [(one, number if one is kind else None) for one in beyond]


@given(st.sets(kinds))
def test_each_entity_is_listed_once_whatever_is_asked_for(wanted: set[EntityType]) -> None:
    asked = kinds_asked_for(wanted)
    assert not {EntityType.PROMPT, EntityType.SNIPPET} <= set(asked)
    if wanted:
        assert set(asked) == wanted - ({EntityType.SNIPPET} if EntityType.PROMPT in wanted else set())
    else:
        assert set(asked) == set(EntityType) - {EntityType.SNIPPET}
