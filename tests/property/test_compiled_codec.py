"""The compiled codec and the reference are one: same bytes, same values, same refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from amqp_values import same, values
from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp import codec as reference
from cogwork.amqp.errors import DecodeError, EncodeError
from cogwork.amqp.types import Array, Symbol, ULong, UShort
from cogwork.dataplane.encoding import codec as compiled

if TYPE_CHECKING:
    from collections.abc import Callable

CODES = sorted(
    {0x00, *range(0x40, 0x46), *range(0x50, 0x57), 0x60, 0x61, *range(0x70, 0x75)}
    | {*range(0x80, 0x85), 0x94, 0x98, 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3}
    | {0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0}
)


def outcome(
    decode: Callable[..., tuple[object, int]],
    data: bytes | memoryview,
    offset: int,
    end: int | None,
) -> list[object]:
    try:
        return list(decode(data, offset, end))
    except DecodeError as error:
        return [str(error), error.offset]


def check_decoding(data: bytes | memoryview, offset: int = 0, end: int | None = None) -> None:
    expected = outcome(reference.decode, data, offset, end)
    assert same(outcome(compiled.decode, data, offset, end), expected)


@given(values)
def test_both_encode_to_the_same_bytes(value: object) -> None:
    data = reference.encode(value)
    assert compiled.encode(value) == data
    check_decoding(data)
    check_decoding(memoryview(bytearray(data)))


@given(values, st.data())
def test_both_refuse_what_was_cut_off(value: object, data: st.DataObject) -> None:
    whole = reference.encode(value)
    check_decoding(whole[: data.draw(st.integers(0, len(whole)))])
    check_decoding(
        whole, data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))
    )


@given(values, st.data())
def test_both_agree_about_mutated_bytes(value: object, data: st.DataObject) -> None:
    mutated = bytearray(reference.encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        mutated[at] = data.draw(st.sampled_from(CODES) | st.integers(0, 255))
    check_decoding(bytes(mutated))


pieces = st.one_of(
    st.sampled_from(CODES).map(lambda code: bytes((code,))),
    st.integers(0, 12).map(lambda size: bytes((size,))),
    st.integers(0, 12).map(lambda size: size.to_bytes(4, "big")),
    st.binary(max_size=4),
)


@given(st.lists(pieces, max_size=25).map(b"".join))
def test_both_agree_about_bytes_that_look_like_values(data: bytes) -> None:
    check_decoding(data)


@pytest.mark.parametrize(
    "value",
    [
        2**64,
        -(2**63) - 1,
        int.__new__(UShort, 70000),
        int.__new__(ULong, -1),
        "\ud800",
        Symbol("é"),
        Symbol("\ud800"),
        [object()],
        {1: {2, 3}},
        Array([Symbol("é")], Symbol),
        Array([Symbol("a" * 300)] * 2 + ["b"], Symbol),
    ],
)
def test_both_refuse_what_has_no_encoding(value: object) -> None:
    with pytest.raises(EncodeError) as expected:
        reference.encode(value)
    with pytest.raises(EncodeError) as caught:
        compiled.encode(value)
    assert str(caught.value) == str(expected.value)


def nested(levels: int) -> object:
    value: object = Array([], Array)
    for level in range(levels):
        value = [value] if level % 2 else {"a": Array([value], type(value))}
    return value


@pytest.mark.parametrize("levels", range(40))
def test_both_stop_at_the_same_depth(levels: int) -> None:
    value = nested(levels)
    try:
        data = reference.encode(value)
    except EncodeError:
        with pytest.raises(EncodeError, match="deeper than 32"):
            compiled.encode(value)
    else:
        assert compiled.encode(value) == data
        check_decoding(data)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("depth", [30, 31, 32, 33, 34, 100_000])
def test_both_stop_at_the_same_depth_of_hostile_bytes(code: int, depth: int) -> None:
    for opening in (b"\x00", b"\xc0\xff\x01", b"\xe0\xff\x01\xe0"):
        check_decoding(opening * depth + bytes((code, 0, 0)))


def test_a_value_larger_than_the_first_buffer() -> None:
    value = ["a" * 300, {"b": b"c" * 100_000}, [0] * 500, [[]] * 300]
    data = reference.encode(value)
    assert compiled.encode(value) == data
    check_decoding(data)
