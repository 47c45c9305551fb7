"""By which schema a message is read that says what it was made by."""

import msgspec
import pytest

from cogwork.dataplane.message.messages import Message
from cogwork.schema import InvalidBody, Registry, numbers
from cogwork.schema.bodies import name_of, version_of
from cogwork.schema.events import Unregistered

PATTERN, EXACT = "topic/orders.#", "topic/orders.eu"


def constant(value: int) -> bytes:
    return b'{"const":%d}' % value


def registered(*entries: tuple[str, int]) -> Registry:
    """Register one schema after the other, each of which takes one value."""
    found = Registry()
    for address, value in entries:
        event = found.register(address, "json", constant(value), must_fit=False)
        found.apply(event)
    return found


def without(found: Registry, address: str) -> Registry:
    found.apply(found.unregister(address))
    return found


def read(found: Registry, value: int, version: int | None, name: str | None = None) -> object:
    return found.decode(f"/{EXACT}", None, b"%d" % value, version, name)


def test_a_version_of_a_pattern_is_that_also_where_an_address_has_one_of_its_own() -> None:
    found = registered((PATTERN, 1), (PATTERN, 2), (PATTERN, 3), (EXACT, 11))
    for version in (1, 2, 3):
        assert read(found, version, version, PATTERN) == version
    assert read(found, 11, 1, EXACT) == 11
    with pytest.raises(InvalidBody, match="11 was expected"):
        read(found, 1, 1, EXACT)


def test_a_version_of_an_address_is_not_one_of_a_pattern_when_it_is_gone() -> None:
    found = without(registered((PATTERN, 1), (EXACT, 11)), EXACT)
    with pytest.raises(InvalidBody) as caught:
        read(found, 1, 1, EXACT)
    assert str(caught.value) == (
        f"version 1 of the schema of {EXACT}, by which it was made, is not there: "
        "it has no schema any more"
    )
    assert read(found, 1, 1, PATTERN) == 1
    found = without(registered((PATTERN, 1), (EXACT, 11)), PATTERN)
    with pytest.raises(InvalidBody, match=r"version 1 of the schema of topic/orders\.#, .* any mo"):
        read(found, 11, 1, PATTERN)


def test_what_nobody_ever_registered_is_told_from_what_is_gone() -> None:
    with pytest.raises(InvalidBody, match=r"of topic/\*, .* is not there: it has no schema$"):
        registered((PATTERN, 1)).decode("topic/orders", None, b"1", 1, "topic/*")
    with pytest.raises(InvalidBody, match=r"version 2 .* is not there: the newest one is 1$"):
        read(registered((PATTERN, 1)), 1, 2, PATTERN)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (registered((PATTERN, 1), (EXACT, 11)), 11),
        (without(registered((PATTERN, 1), (EXACT, 11)), PATTERN), 11),
        (without(registered((PATTERN, 1), (EXACT, 11)), EXACT), 1),
        (without(registered((PATTERN, 1), ("#", 11)), PATTERN), 11),
    ],
)
def test_of_whoever_names_no_address_nobody_knows_whose_version_it_was(
    found: Registry, value: int
) -> None:
    assert read(found, value, 3) == value
    again = Registry.from_bytes(found.to_bytes())
    assert read(again, value, 3) == value


def test_it_may_be_the_version_of_one_that_a_former_release_has_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = registered((PATTERN, 1), (EXACT, 11))
    found.apply(msgspec.json.encode(Unregistered(PATTERN, 1)))
    assert read(found, 11, 3) == 11
    monkeypatch.setattr(numbers, "GONE_MAX", 1)
    found.apply(found.register("topic/else", "json", b"true"))
    found.apply(msgspec.json.encode(Unregistered("topic/else", 1)))
    with pytest.raises(InvalidBody, match="version 3"):
        read(found, 11, 3)


def test_where_there_never_was_another_one_the_number_is_enough() -> None:
    found = registered((PATTERN, 1), ("topic/else", 2), ("queue/#", 3))
    assert read(found, 1, 1) == 1
    with pytest.raises(InvalidBody, match="version 3"):
        read(found, 1, 3)
    found.apply(found.register("#", "json", b"true"))
    assert read(found, 1, 3) == 1


@pytest.mark.parametrize("name", ["topic/else", "queue/#", "topic/#.us", "#.#.us"])
def test_a_number_of_another_address_says_nothing(name: str) -> None:
    found = registered(("topic/else", 5), (PATTERN, 1), (PATTERN, 2))
    assert read(found, 2, 1, name) == 2
    with pytest.raises(InvalidBody):
        read(found, 5, 1, name)
    assert found.has_heard_of(EXACT, 9, name)


def test_who_reads_a_message_knows_whether_its_version_may_still_come() -> None:
    found = registered((PATTERN, 1), (EXACT, 11), (EXACT, 12))
    assert found.has_heard_of(EXACT, 2)
    assert not found.has_heard_of(EXACT, 3)
    assert found.has_heard_of(EXACT, 1, PATTERN)
    assert not found.has_heard_of(f"/{EXACT}", 2, f"/{PATTERN}")
    assert found.has_heard_of("elsewhere", 7)
    without(found, EXACT)
    assert found.has_heard_of(EXACT, 2, EXACT)
    assert not found.has_heard_of(EXACT, 3, EXACT)


@pytest.mark.parametrize("value", [None, "", 7, b"a", "x" * 1025, ["a"]])
def test_what_is_no_address_names_none(value: object) -> None:
    message = Message(b"", annotations={"x-opt-schema-address": value, "x-opt-schema-version": 3})
    assert name_of(Message.decode(message.encode())) is None
    assert version_of(message) == 3


def test_an_address_is_named() -> None:
    message = Message(b"", annotations={"x-opt-schema-address": PATTERN})
    assert name_of(Message.decode(message.encode())) == PATTERN
    assert version_of(message) is None
    with pytest.raises(InvalidBody):
        name_of(Message.decode(b"\x00\x53\x72\x40"))
