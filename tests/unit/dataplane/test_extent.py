"""What a value takes at the least: never more than any codec writes, and bounded work."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.dataplane.encoding.extent import exceeds
from cogwork.dataplane.message.messages import Message
from cogwork.rpc.codec import codec_named

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@dataclass
class Disk:
    """A dataclass of one field."""

    name: str


class Owner(msgspec.Struct):
    """A Struct of one field."""

    name: str


@given(VALUES)
@pytest.mark.parametrize("codec", ["amqp", "json", "msgpack"])
def test_what_a_codec_writes_never_counts_as_too_large(codec: str, value: object) -> None:
    try:
        size_bytes = len(Message(codec_named(codec).encode(value)).encode())
    except Exception:  # it cannot be written at all
        return
    assert not exceeds(value, size_bytes)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 101,
        b"x" * 101,
        bytearray(101),
        memoryview(bytes(101)),
        [None] * 101,
        dict.fromkeys(range(51)),
    ],
)
def test_what_is_larger_than_the_limit_shows(value: object) -> None:
    assert exceeds(value, 100)
    assert exceeds({"a": [value]}, 100)
    assert not exceeds(value, 1000)


def test_fields_count() -> None:
    for value in (Disk("x" * 100), Owner("x" * 100), {"a": (Disk("x" * 100),)}):
        assert exceeds(value, 99)
        assert not exceeds(value, 200)


def test_the_work_is_bounded() -> None:
    assert exceeds([["x" * 1000] * 1_000_000] * 1_000_000, 10_000)
    itself: list[object] = []
    itself += [itself, itself]
    assert not exceeds(itself, 2**62)
