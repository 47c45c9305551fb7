"""The types of the fields of mesh messages: what each takes on the wire, and its bounds.

Lists of pairs and of records travel flat, as one list: half the bytes of lists in a list. They are
written and read a record at a time; a value that does not fit its place is the neighbour's fault.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from cogwork.amqp.kinds import STRING, UINT, ULONG, Kind
from cogwork.amqp.types import UByte, UInt, ULong
from cogwork.router.mesh import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = (
    "CLUSTER_OR_NONE",
    "CONTAINER",
    "COST_OR_NONE",
    "HOSTS",
    "INCARNATION",
    "LABELS",
    "NEIGHBOURS",
    "SEQUENCE",
    "UINT",
    "ULONG",
    "VIRTUAL_HOSTS",
    "interests",
    "tuples",
    "versions",
)

T = TypeVar("T")


def _as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _number(kind: Callable[[int], T], value: object) -> T:
    if not isinstance(value, int):
        raise TypeError(f"an integer is expected, not {value!r:.80}")
    return kind(value)


def _text(value: object, limit_bytes: int, *, may_be_empty: bool = False) -> str:
    if type(value) is not str or len(value) > limit_bytes or not (value or may_be_empty):
        raise ValueError(f"text of 1 to {limit_bytes} bytes is expected, not {value!r:.80}")
    if not value.isascii() and len(value.encode()) > limit_bytes:
        raise ValueError(f"text of at most {limit_bytes} bytes is expected, not {value!r:.80}")
    return value


def _whole(value: object, kind: type[int], low: int = 0, high: int | None = None) -> int:
    if type(value) is not kind or value < low or (high is not None and value > high):
        shown = "a number" if high is None else f"{low} to {high}"
        raise ValueError(f"{shown} ({kind.__name__}) is expected, not {value!r:.80}")
    return int(value)


def _container(value: object) -> str:
    name = _text(value, bounds.ID_BYTES_MAX)
    if not name.isprintable():  # it stands in the log
        raise ValueError(f"a printable name is expected, not {value!r:.80}")
    return name


def _cluster(value: object) -> str:
    name = _text(value, bounds.CLUSTER_BYTES_MAX, may_be_empty=True)
    if not name.isprintable():  # it stands in the log
        raise ValueError(f"a printable name is expected, not {value!r:.80}")
    return name


def _incarnation(value: object) -> int:
    return _whole(value, ULong, 1, bounds.INCARNATION_MAX)


def _cost(value: object) -> int:
    return _whole(value, UInt, 1, bounds.COST_MAX)


def _records(value: object, width: int, limit: int) -> list[tuple[object, ...]]:
    """Cut a flat list into records of `width` values."""
    flat = _as_list(value)
    if len(flat) % width or len(flat) // width > limit:
        raise ValueError(f"at most {limit} records of {width} are expected, not {len(flat)} values")
    columns = [flat[at::width] for at in range(width)]
    return list(zip(*columns, strict=True))


def _iterable(value: object) -> Iterable[tuple[object, ...]]:
    if not isinstance(value, tuple):
        raise TypeError(f"a tuple is expected, not {value!r:.80}")
    return value


def _list_kind(
    name: str, to_wire: Callable[[object], object], from_wire: Callable[[object], object]
) -> Kind:
    return Kind(name, (list,), to_wire, from_wire)


def _texts(name: str, limit_bytes: int, limit: int) -> Kind:
    def read(value: object) -> object:
        found = _as_list(value)
        if len(found) > limit:
            raise ValueError(f"at most {limit} are expected, not {len(found)}")
        return tuple(_text(each, limit_bytes, may_be_empty=True) for each in found)

    return _list_kind(name, lambda value: list(_iterable(value)), read)


def _write_neighbours(value: object) -> object:
    flat: list[object] = []
    for container, cost in _iterable(value):
        flat += (container, _number(UInt, cost))
    return flat


def _read_neighbours(value: object) -> object:
    found = tuple(
        (_container(container), _cost(cost))
        for container, cost in _records(value, 2, bounds.NEIGHBOURS_MAX)
    )
    names = [container for container, _ in found]
    if any(one >= other for one, other in pairwise(names)):
        raise ValueError("neighbours in order, each once, are expected")
    return found


def _write_labels(value: object) -> object:
    return [_number(UInt, label) for label in _iterable(value)]


def _read_labels(value: object) -> object:
    found = _as_list(value)
    if len(found) > bounds.PART_INTERESTS_MAX:
        raise ValueError(f"at most {bounds.PART_INTERESTS_MAX} labels are expected")
    return tuple(_whole(label, UInt) for label in found)


def tuples(name: str, make: Callable[..., tuple[int, ...]], item: Kind) -> Kind:
    """Return the kind of a named tuple of numbers; a longer one is cut, for later versions."""
    default = make()
    (wire_type,) = item.wire_types
    convert = item.to_wire
    assert convert is not None

    def read(value: object) -> object:
        found = _as_list(value)[: len(default)]
        return make(*(_whole(each, wire_type) for each in found))

    return _list_kind(name, lambda value: [convert(each) for each in _iterable(value)], read)


def versions(make: Callable[..., T]) -> Kind:
    """Return the kind of a list of versions: an id, an incarnation, and four numbers."""

    def write(value: object) -> object:
        flat: list[object] = []
        for origin, incarnation, *numbers in _iterable(value):
            flat += (origin, _number(ULong, incarnation))
            flat += (_number(UInt, number) for number in numbers)
        return flat

    def read(value: object) -> object:
        return tuple(
            make(
                _container(origin),
                _incarnation(incarnation),
                *(_whole(number, UInt) for number in numbers),
            )
            for origin, incarnation, *numbers in _records(value, 6, bounds.CONTAINERS_MAX)
        )

    return _list_kind("versions", write, read)


_KINDS_OF_INTEREST = 7
_INTEREST_WIDTH = 7


def interests(make: Callable[..., T]) -> Kind:
    """Return the kind of a list of interests, each behind its label."""

    def write(value: object) -> object:
        flat: list[object] = []
        for label, interest in _iterable(value):
            kind, virtual_host, address, *figures = _iterable(interest)
            flat += (_number(UInt, label), _number(UByte, kind))
            flat += (virtual_host or None, address)
            flat += (_number(UInt, figure) for figure in figures)
        return flat

    def read(value: object) -> object:
        return tuple(
            (
                _whole(label, UInt),
                make(
                    _whole(kind, UByte, 0, _KINDS_OF_INTEREST - 1),
                    ""
                    if virtual_host is None
                    else _text(virtual_host, bounds.VIRTUAL_HOST_BYTES_MAX),
                    _text(address, bounds.ADDRESS_BYTES_MAX),
                    *(_whole(figure, UInt) for figure in figures),
                ),
            )
            for label, kind, virtual_host, address, *figures in _records(
                value, _INTEREST_WIDTH, bounds.PART_INTERESTS_MAX
            )
        )

    return _list_kind("interests", write, read)


CONTAINER = Kind("container", (str,), STRING.to_wire, _container)
CLUSTER_OR_NONE = Kind("cluster or none", (str,), STRING.to_wire, _cluster)
INCARNATION = Kind("incarnation", (ULong,), ULONG.to_wire, _incarnation)
SEQUENCE = Kind("sequence", (UInt,), UINT.to_wire, lambda value: _whole(value, UInt, 1))
COST_OR_NONE = Kind(
    "cost", (UInt,), UINT.to_wire, lambda value: _whole(value, UInt, 0, bounds.COST_MAX)
)
VIRTUAL_HOSTS = _texts("virtual hosts", bounds.VIRTUAL_HOST_BYTES_MAX, bounds.VIRTUAL_HOSTS_MAX)
HOSTS = _texts("hosts", bounds.ADDRESS_BYTES_MAX, bounds.HOSTS_MAX)
NEIGHBOURS = _list_kind("neighbours", _write_neighbours, _read_neighbours)
LABELS = _list_kind("labels", _write_labels, _read_labels)
