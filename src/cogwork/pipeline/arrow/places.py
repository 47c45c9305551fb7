"""Where columns lie in memory, for compiled code that walks over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("Place", "map_places", "place_of", "plain")


class Place(NamedTuple):
    """Where one column lies, for as long as somebody holds it.

    Attributes:
        validity: The address of its validity bits; 0 where no value is null.
        offsets: The address of its offsets of 32 bits, or of its values, where these have one size.
        data: The address of its octets; 0 where there are none.
        first: The number of the first value in there.
    """

    validity: int
    offsets: int
    data: int
    first: int


def plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column with offsets of 32 bits."""
    return column if column.type.equals(kind) else column.cast(kind)


def place_of(array: pa.Array) -> Place:
    """Return where an array lies.

    Raises:
        pyarrow.ArrowInvalid: It is not what it says.
    """
    array.validate()
    buffers = array.buffers()
    validity = buffers[0] if array.null_count else None
    data = buffers[2] if len(buffers) > 2 else None
    return Place(_address(validity), _address(buffers[1]), _address(data), array.offset)


def map_places(maps: pa.MapArray) -> tuple[Place, Place, Place]:
    """Return where maps lie, their keys and their values."""
    return place_of(maps), place_of(maps.keys), place_of(maps.items)


def _address(buffer: Any) -> int:  # noqa: ANN401 # pyarrow has no types
    return 0 if buffer is None else int(buffer.address)
