"""Hashes of the rows of a table, as Spark's `xxhash64` has them, without an object for a value.

Theory of operation. A row's hash is XXH64 of its first column, seeded with 42; that of each other
column is seeded with the hash so far, and nulls are passed over. So a column is hashed at a time,
over the hashes of those before it. Columns lie in memory as Arrow lays them out; whoever calls
holds them meanwhile, and vouches for their layout. A column whose values stand in a dictionary has
their places there in place of the values.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.tables.hashes import hash_of_number, hash_of_octets
from cython.cimports.libc.stdint import int32_t, int64_t, uint64_t

__all__ = ("SEED", "SOURCE_HASH", "hash_numbers", "hash_texts")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()

SEED = 42
"""What Spark begins with."""


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_null(validity: octets, at: int64_t) -> cython.bint:
    """Return whether a value is null."""
    return validity != cython.NULL and ((validity[at >> 3] >> (at & 7)) & 1) == 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def size_of(data: octets, size: int64_t, characters: int64_t) -> int64_t:
    """Return how many octets the first characters of a text in UTF-8 have."""
    at: int64_t = 0
    while at < size:
        if data[at] & 0xC0 != 0x80:
            if characters == 0:
                return at
            characters -= 1
        at += 1
    return size


def hash_numbers(
    hashes: uint64_t[::1], validity: cython.size_t, values: cython.size_t, first: int64_t
) -> None:
    """Hash a column of numbers of 64 bits.

    Args:
        hashes: Those so far; replaced.
        validity: The address of the column's validity bits; 0 where no value is null.
        values: The address of its values.
        first: The number of the first value in there.
    """
    bits: octets = cython.cast(octets, validity)
    numbers: cython.pointer(uint64_t) = cython.cast(cython.pointer(uint64_t), values)
    at: cython.Py_ssize_t
    for at in range(hashes.shape[0]):
        if not is_null(bits, first + at):
            hashes[at] = hash_of_number(numbers[first + at], hashes[at])


def hash_texts(
    hashes: uint64_t[::1],
    rows: tuple[int, int, int],
    values: tuple[int, int, int],
    characters: int64_t,
) -> None:
    """Hash a column of texts or octets.

    Args:
        hashes: Those so far; replaced.
        rows: The address of the rows' validity bits (0 where none is null), that of their places
            among the values (0 where each row has its own), and the number of the first row there.
        values: The addresses of the values' offsets of 32 bits, and of their octets, and the number
            of the first value there.
        characters: So many of each text are hashed; all where negative.
    """
    address: cython.size_t = rows[0]
    validity: octets = cython.cast(octets, address)
    address = rows[1]
    places: cython.pointer(cython.const[int32_t]) = cython.cast(
        cython.pointer(cython.const[int32_t]), address
    )
    first_row: int64_t = rows[2]
    address = values[0]
    offsets: cython.pointer(cython.const[int32_t]) = cython.cast(
        cython.pointer(cython.const[int32_t]), address
    )
    address = values[1]
    data: octets = cython.cast(octets, address)
    first_value: int64_t = values[2]
    row: cython.Py_ssize_t
    value: int64_t
    size: int64_t
    for row in range(hashes.shape[0]):
        if is_null(validity, first_row + row):
            continue
        value = first_value + (places[first_row + row] if places != cython.NULL else row)
        size = offsets[value + 1] - offsets[value]
        if characters >= 0:
            size = size_of(data + offsets[value], size, characters)
        hashes[row] = hash_of_octets(data + offsets[value], size, hashes[row])
