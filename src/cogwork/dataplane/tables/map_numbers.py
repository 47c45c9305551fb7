"""Whole numbers that stand as texts in a column of maps, taken out by their name.

Theory of operation. The maps lie in memory as Arrow lays them out: for each row, where its entries
begin and end; then all keys, and all values. Whoever calls holds them meanwhile, and vouches for
their layout. The first entry of a name counts. What is no plain number (`12`, `-3`) is told apart
from what is not there.
"""

import cython
from cython.cimports.cogwork.dataplane.encoding.octets import octets
from cython.cimports.cogwork.dataplane.source_hash import COGWORK_SOURCE_HASH
from cython.cimports.cogwork.dataplane.tables.map_numbers import ABSENT, NUMBER, ODD, read_number
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t
from cython.cimports.libc.string import memcmp

__all__ = ("SOURCE_HASH", "MapNumbers")

SOURCE_HASH = COGWORK_SOURCE_HASH.decode()


class MapNumbers:
    """Where the maps of some rows are.

    `take` tells of each row 0 where a name is not there or null, 1 where it has a number, and 2
    where it has something else.
    """

    def __cinit__(
        self,
        maps: tuple[int, int, int],
        keys: tuple[int, int, int],
        values: tuple[int, int, int, int],
    ):
        """Note it.

        Args:
            maps: The addresses of their validity bits (0 where none is null) and of their offsets,
                and the number of the first one.
            keys: The addresses of the offsets and of the octets, and the number of the first one.
            values: The same, after the address of their validity bits.
        """
        place: cython.size_t
        place, self.first = maps[0], maps[2]
        self.validity = cython.cast(octets, place)
        place = maps[1]
        self.offsets = cython.cast(cython.pointer(cython.const[int32_t]), place)
        place, self.key_first = keys[0], keys[2]
        self.key_offsets = cython.cast(cython.pointer(cython.const[int32_t]), place)
        place = keys[1]
        self.key_data = cython.cast(octets, place)
        place, self.value_first = values[0], values[3]
        self.value_validity = cython.cast(octets, place)
        place = values[1]
        self.value_offsets = cython.cast(cython.pointer(cython.const[int32_t]), place)
        place = values[2]
        self.value_data = cython.cast(octets, place)

    def take(self, name: bytes, numbers: int64_t[::1], found: uint8_t[::1]) -> None:
        """Take the numbers of one name.

        Args:
            name: The key.
            numbers: Gets them; zero where there is none.
            found: Gets what there is.
        """
        key: octets = name
        size: int64_t = len(name)
        row: cython.Py_ssize_t
        for row in range(numbers.shape[0]):
            numbers[row] = 0
            found[row] = self.look(row, key, size, cython.address(numbers[row]))

    def look(self, row, key, size, number):
        """Look into the map of one row."""
        at: int64_t = self.first + row
        entry: int64_t
        start: int32_t
        if self.validity != cython.NULL and not (self.validity[at >> 3] >> (at & 7)) & 1:
            return ABSENT
        for entry in range(self.offsets[at], self.offsets[at + 1]):
            start = self.key_offsets[self.key_first + entry]
            if self.key_offsets[self.key_first + entry + 1] - start != size:
                continue
            if memcmp(self.key_data + start, key, size) == 0:
                return self.look_at(self.value_first + entry, number)
        return ABSENT

    def look_at(self, entry, number):
        """Look at the value of one entry."""
        validity: octets = self.value_validity
        if validity != cython.NULL and not (validity[entry >> 3] >> (entry & 7)) & 1:
            return ABSENT
        start: int32_t = self.value_offsets[entry]
        size: int64_t = self.value_offsets[entry + 1] - start
        return NUMBER if read_number(self.value_data + start, size, number) else ODD
