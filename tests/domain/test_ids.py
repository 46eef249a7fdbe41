from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.ids import MAX_NUMBER, CellAddress, cell_id, find_cell_address

KEY = bytes(range(32))
numbers = st.integers(min_value=0, max_value=MAX_NUMBER)


@given(numbers, numbers)
def test_a_cell_id_decodes_to_its_address_and_is_a_version_8_uuid(column_no: int, row_no: int) -> None:
    address = CellAddress(column_no, row_no)
    encoded = cell_id(KEY, address)
    assert encoded.version == 8
    assert find_cell_address(KEY, encoded) == address


@given(numbers, numbers, st.integers(min_value=0, max_value=127))
def test_a_flipped_bit_is_refused(column_no: int, row_no: int, bit: int) -> None:
    encoded = cell_id(KEY, CellAddress(column_no, row_no))
    assert find_cell_address(KEY, UUID(int=encoded.int ^ (1 << bit))) is None


def test_another_installations_id_and_a_random_uuid_are_refused() -> None:
    assert find_cell_address(KEY, cell_id(bytes(32), CellAddress(1, 1))) is None
    assert find_cell_address(KEY, uuid4()) is None


def test_the_encoding_never_changes() -> None:
    assert str(cell_id(KEY, CellAddress(7, 123_456))) == "b9e4811b-c50b-81c1-9165-6447b4fda887"
