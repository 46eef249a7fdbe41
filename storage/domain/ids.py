"""Cell ids: a keyed, reversible encoding of column and row numbers into a version 8 UUID.

122 free bits hold 80 bits of payload (column number 40, row number 40) and a 42-bit MAC. The payload is
masked by a key stream drawn from the MAC, so that neighbouring cells look unrelated and a guess is
refused. Ids are stored by clients: this encoding must never change.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID, SafeUUID

_NUMBER_BITS = 40
_MAC_BITS = 42
_PAYLOAD_BITS = 2 * _NUMBER_BITS
_UNKNOWN = SafeUUID.unknown
MAX_NUMBER = (1 << _NUMBER_BITS) - 1


@dataclass(frozen=True, slots=True)
class CellAddress:
    """A column number (unique in the installation) and a row number (unique in its sheet)."""

    column_no: int
    row_no: int


def cell_id(key: bytes, address: CellAddress) -> UUID:
    """Encode an address; `key` has 32 bytes."""
    payload = (address.column_no << _NUMBER_BITS) | address.row_no
    mac = _mac(key, payload)
    return _pack((mac << _PAYLOAD_BITS) | (payload ^ _mask(key, mac)))


def find_cell_address(key: bytes, cell: UUID) -> CellAddress | None:
    """Decode a cell id; None when it was not made with this key."""
    if cell.version != 8 or cell.variant != "specified in RFC 4122":  # noqa: PLR2004
        return None
    bits = _unpack(cell)
    mac = bits >> _PAYLOAD_BITS
    payload = (bits & ((1 << _PAYLOAD_BITS) - 1)) ^ _mask(key, mac)
    if _mac(key, payload) != mac:
        return None
    return CellAddress(payload >> _NUMBER_BITS, payload & MAX_NUMBER)


def _mac(key: bytes, payload: int) -> int:
    hasher = _hasher(key, b"cell-mac", 8).copy()
    hasher.update(payload.to_bytes(10, "big"))
    return int.from_bytes(hasher.digest(), "big") >> (64 - _MAC_BITS)


def _mask(key: bytes, mac: int) -> int:
    hasher = _hasher(key, b"cell-mask", 10).copy()
    hasher.update(mac.to_bytes(6, "big"))
    return int.from_bytes(hasher.digest(), "big")


@lru_cache(maxsize=8)
def _hasher(key: bytes, person: bytes, digest_bytes: int) -> blake2b:
    # keying a hash costs more than hashing a payload, and a page of rows has thousands of ids
    return blake2b(digest_size=digest_bytes, key=key, person=person)


def _pack(bits: int) -> UUID:
    high, mid, low = bits >> 74, (bits >> 62) & 0xFFF, bits & ((1 << 62) - 1)
    return _uuid((high << 80) | (8 << 76) | (mid << 64) | (0b10 << 62) | low)


def _uuid(number: int) -> UUID:
    # its constructor looks at every way of making one, and a page makes a hundred thousand
    made = object.__new__(UUID)
    object.__setattr__(made, "int", number)
    object.__setattr__(made, "is_safe", _UNKNOWN)
    return made


def _unpack(value: UUID) -> int:
    number = value.int
    return ((number >> 80) << 74) | (((number >> 64) & 0xFFF) << 62) | (number & ((1 << 62) - 1))


_VERSION_BITS = 0xF << 76


def hidden_id(minted: UUID) -> UUID:
    """Make the id of a table that keeps rows of datasets or reports: a UUID of no version.

    Such a table is none to clients; by its form its id is unknown wherever one of theirs is read.
    """
    return UUID(int=minted.int & ~_VERSION_BITS)


def is_hidden_id(table_id: UUID) -> bool:
    return not table_id.int & _VERSION_BITS
