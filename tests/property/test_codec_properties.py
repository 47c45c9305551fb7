"""The codec under random values and hostile bytes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from amqp_values import same, values
from hypothesis import given
from hypothesis import strategies as st

from cogwork.amqp.codec import decode, encode
from cogwork.amqp.errors import DecodeError


@given(values, st.binary(max_size=3))
def test_what_is_encoded_is_decoded(value: object, behind: bytes) -> None:
    data = encode(value)
    decoded, following = decode(data + behind)
    assert same(decoded, value)
    assert following == len(data)


@given(values)
def test_what_was_decoded_encodes_to_the_same_bytes(value: object) -> None:
    data = encode(value)
    assert encode(decode(data)[0]) == data


@given(values, st.data())
def test_a_truncated_value_is_refused(value: object, data: st.DataObject) -> None:
    whole = encode(value)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(DecodeError) as caught:
        decode(whole[:length])
    assert 0 <= caught.value.offset <= length


@given(values, st.data())
def test_no_byte_outside_of_the_bounds_counts(value: object, data: st.DataObject) -> None:
    whole = encode(value)
    before, behind = data.draw(st.binary(max_size=3)), data.draw(st.binary(max_size=3))
    framed = memoryview(before + whole + behind)
    decoded, following = decode(framed, len(before), len(before) + len(whole))
    assert same(decoded, value)
    assert following == len(before) + len(whole)


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_raise_a_decode_error(data: bytes) -> None:
    with suppress(DecodeError):
        decode(data)
