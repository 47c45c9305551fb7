"""Which schema an address has, and that everybody who applies the same events agrees."""

import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.schema import (
    Conflict,
    InvalidAddress,
    InvalidBody,
    InvalidSchema,
    Registered,
    Registry,
    entries,
    make_schema,
    numbers,
    registry,
)
from cogwork.schema.events import EVENT_BYTES_MAX, Unregistered
from cogwork.schema.schema import SCHEMA_BYTES_MAX

NUMBER = b'{"type": "number"}'
STRING = b'{"type": "string"}'
GONE = Unregistered("a", 1)


def filled(**schemas: bytes) -> Registry:
    found = Registry()
    for address, definition in schemas.items():
        found.apply(found.register(address, "json", definition))
    return found


def test_making_an_event_changes_nothing() -> None:
    found = Registry()
    event = found.register("stream/orders", "json", NUMBER)
    assert found.check("stream/orders", None, b'"x"') is None
    found.apply(event)
    assert found.check("stream/orders", None, b'"x"') is not None
    found.apply(found.unregister("stream/orders"))
    assert found.check("stream/orders", None, b'"x"') is None
    assert len(found) == 0


def test_a_message_is_checked() -> None:
    found = filled(prices=NUMBER)
    assert found.check("prices", "application/json", b"7") is None
    assert found.check("/prices", None, b"7") is None
    assert found.check("elsewhere", "anything", b"\xff") is None
    assert found.check("prices", None, b'"x"') == "$: 'x' is not of type 'number'"
    reason = found.check("prices", "text/plain", b"7")
    assert reason == "the content-type is to be application/json, not 'text/plain'"


@pytest.mark.parametrize(
    ("address", "meant"),
    [("topic/b#", "topic/b.#"), ("topic/#.a*c/d", r"topic/#.a.\*.c/d"), ("##", "#.#")],
)
def test_who_misplaces_a_wildcard_is_told_what_would_be_right(address: str, meant: str) -> None:
    with pytest.raises(InvalidAddress, match=f"as whole words only, as in {meant}$"):
        Registry().register(address, "json", NUMBER)


def test_what_was_registered_with_a_misplaced_wildcard_stays_and_can_be_taken_away() -> None:
    found = Registry()
    found.apply(msgspec.json.encode(Registered("topic/c#", 1, "json", NUMBER)))
    assert found.check("topic/c#", None, b'"x"') is not None
    found.apply(found.unregister("topic/c#"))
    assert len(found) == 0


@pytest.mark.parametrize("address", ["", "/", "//"])
def test_what_is_sent_to_no_address_has_no_schema_but_that_of_all(address: str) -> None:
    found = filled(prices=NUMBER)
    assert found.decode(address, None, b"7") == b"7"
    found.apply(found.register("#", "json", STRING))
    assert found.check(address, None, b"7") is not None


def test_it_encodes_and_decodes() -> None:
    found = filled(prices=NUMBER)
    assert found.encode("prices", 7) == ("application/json", b"7")
    assert found.decode("prices", None, b"7") == 7
    assert found.decode("elsewhere", None, b"7") == b"7"
    with pytest.raises(InvalidBody):
        found.encode("prices", "x")
    with pytest.raises(InvalidBody, match="has no schema"):
        found.encode("elsewhere", 7)


def test_the_pattern_with_most_plain_words_counts() -> None:
    found = Registry()
    for address, value in (
        ("topic/#", 1),
        ("topic/a.*", 2),
        ("topic/*.b.c", 3),
        ("topic/a.b", 4),
    ):
        found.apply(found.register(address, "json", msgspec.json.encode({"const": value})))
    for address, value in (
        ("topic/x", 1),
        ("topic/a.x", 2),
        ("topic/x.b.c", 3),
        ("topic/a.b", 4),
        ("topic/a.b.c", 3),
    ):
        assert found.check(address, None, str(value).encode()) is None, address
        assert found.check(address, None, b"9") is not None
    assert found.check("queue/x", None, b"9") is None


def test_a_new_schema_is_a_version_of_the_old_one() -> None:
    found = filled(prices=NUMBER)
    assert found.check("prices", None, b"7") is None
    found.apply(found.register("prices", "json", STRING, must_fit=False))
    assert found.check("prices", None, b"7") is not None
    assert len(found) == 1
    newest, first = found.find("/prices"), found.find("prices", 1)
    assert newest is not None
    assert first is not None
    assert (newest.version, newest.definition) == (2, STRING)
    assert (first.version, first.definition) == (1, NUMBER)
    assert found.find("prices", 3) is None
    assert found.find("prices", 0) is None
    assert list(found) == [newest]
    assert list(found.versions("prices")) == [first, newest]
    assert found.decode("prices", None, b"7", version=1) == 7
    found.apply(found.unregister("prices"))
    assert found.versions("prices") == []
    assert found.apply(found.register("prices", "json", NUMBER)).version == 3


def test_the_number_of_a_version_that_was_taken_away_is_never_given_again() -> None:
    found = filled(prices=NUMBER)
    found.apply(found.unregister("prices"))
    late = Registry.from_bytes(found.to_bytes())
    with pytest.raises(InvalidSchema, match="has no schema"):
        late.unregister("prices")
    with pytest.raises(Conflict):
        late.apply(msgspec.json.encode(Unregistered("prices", 1)))
    event = found.register("prices", "json", STRING)
    for each in (found, late):
        assert each.apply(event).version == 2
        assert each.decode("prices", None, b'"x"', version=2) == "x"
        with pytest.raises(InvalidBody, match=r"version 1 of .*prices.* newest one is 2"):
            each.decode("prices", None, b'"x"', version=1)
        again = Registry.from_bytes(each.to_bytes())
        again.apply(again.unregister("prices"))
        assert again.apply(again.register("prices", "json", NUMBER)).version == 3
    assert found.to_bytes() == late.to_bytes()


def test_a_version_that_is_not_there_is_replaced_by_no_other_one() -> None:
    found = filled(prices=NUMBER)
    with pytest.raises(InvalidBody, match=r"version 2 .* newest one is 1"):
        found.decode("prices", None, b"7", version=2)
    assert found.decode("elsewhere", None, b"7", version=2) == b"7"


def test_a_stream_in_which_the_numbers_begin_again_is_still_read() -> None:
    first, second = (Registered("a", version, "json", NUMBER) for version in (1, 2))
    gone = Unregistered("a", 2)
    found = Registry()
    for event in (first, second, gone, first, Unregistered("a", 1)):
        found.apply(msgspec.json.encode(event))
    assert found.apply(found.register("a", "json", NUMBER)).version == 3


def test_of_what_was_taken_away_the_latest_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "GONE_MAX", 2)
    found = Registry()
    for address in ("a", "b", "a", "c"):
        found.apply(found.register(address, "json", NUMBER))
        found.apply(found.unregister(address))
    for each in (found, Registry.from_bytes(found.to_bytes())):
        versions = [each.apply(each.register(name, "json", NUMBER)).version for name in "abc"]
        assert versions == [3, 1, 2]


def test_of_two_changes_that_were_made_at_once_the_second_is_refused() -> None:
    found = filled(prices=NUMBER)
    one = found.register("prices", "json", b"true")
    other = found.register("prices", "json", b"{}")
    gone = found.unregister("prices")
    found.apply(one)
    for late in (other, one, gone):
        with pytest.raises(Conflict, match="version 2"):
            found.apply(late)
    assert found.check("prices", None, b'"x"') is None
    assert len(found.versions("prices")) == 2


def test_what_is_not_there_is_not_taken_back() -> None:
    with pytest.raises(InvalidSchema, match="prices has no schema"):
        Registry().unregister("/prices")


def test_the_oldest_versions_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "VERSIONS_MAX", 3)
    found = Registry()
    for _ in range(5):
        found.apply(found.register("a", "json", NUMBER))
    assert [each.version for each in found.versions("a")] == [3, 4, 5]
    assert found.find("a", 2) is None
    assert found._entries.size_bytes == 3 * len(NUMBER)
    again = Registry.from_bytes(found.to_bytes())
    assert list(again.versions("a")) == list(found.versions("a"))
    again.apply(found.register("a", "json", NUMBER))
    assert [each.version for each in again.versions("a")] == [4, 5, 6]


@pytest.mark.parametrize(
    ("kind", "definition"),
    [("json", b"{"), ("xml", b"<a/>"), ("json", b" " * (SCHEMA_BYTES_MAX + 1)), ("protobuf", b"")],
)
def test_what_is_no_schema_is_not_registered(kind: str, definition: bytes) -> None:
    with pytest.raises(InvalidSchema):
        Registry().register("a", kind, definition)


@pytest.mark.parametrize("address", ["", "/", "x" * 2000])
def test_what_is_no_address_is_not_registered(address: str) -> None:
    with pytest.raises(InvalidSchema, match="characters"):
        Registry().register(address, "json", NUMBER)


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"{}",
        b'{"event": "burnt", "address": "a"}',
        b'{"event": "registered", "address": "a", "version": 2, "kind": "json", "definition": "!"}',
        b'{"event": "registered", "address": "a", "version": 2, "kind": "x", "definition": ""}',
        b'{"event": "registered", "address": "", "version": 1, "kind": "json", "definition": ""}',
        b'{"event": "unregistered", "address": "a", "version": 1, "format": 2}',
        b"[" * 100_000,
        b" " * (EVENT_BYTES_MAX + 1),
    ],
)
def test_what_is_no_event_changes_nothing(event: bytes) -> None:
    found = filled(a=NUMBER)
    with pytest.raises(InvalidSchema):
        found.apply(event)
    assert found.check("a", None, b"7") is None
    assert found.check("a", None, b"null") is not None


def test_it_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ADDRESSES_MAX", 2)
    found = filled(a=NUMBER, b=NUMBER)
    with pytest.raises(InvalidSchema, match="2 addresses"):
        found.register("c", "json", NUMBER)
    found.apply(found.register("a", "json", STRING, must_fit=False))
    monkeypatch.setattr(registry, "REGISTRY_BYTES_MAX", 70)
    with pytest.raises(InvalidSchema, match="70 octets"):
        found.register("a", "json", STRING + b" " * 10)
    found.apply(found.unregister("b"))
    event = found.register("a", "json", STRING + b" " * 10)
    found.apply(event)
    with pytest.raises(InvalidSchema, match="70 octets"):
        found.register("a", "json", STRING)


def test_its_patterns_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PATTERNS_MAX", 2)
    found = Registry()
    for address in ("a.*", "#", "plain"):
        found.apply(found.register(address, "json", NUMBER))
    with pytest.raises(InvalidSchema, match="2 patterns"):
        found.register("b.#", "json", NUMBER)
    found.apply(found.register("a.*", "json", STRING, must_fit=False))
    found.apply(found.unregister("#"))
    found.apply(found.register("b.#", "json", NUMBER))
    assert found.check("b", None, b'"x"') is not None
    assert found.check("a.b", None, b"7") is not None
    assert found.check("c", None, b'"x"') is None


def test_addresses_that_were_looked_up_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "CACHE_MAX", 10)
    found = filled(a=NUMBER)
    for i in range(100):
        assert found.check(f"x{i}", None, b"7") is None
        assert found.check("a", None, b"null") is not None
    assert len(found._entries._found) <= 10
    found.apply(found.register("*.#", "json", NUMBER))
    for i in range(100):
        assert found.decode(f"a/{i}", None, b"7", version=1) == 7
        with pytest.raises(InvalidBody, match="version 2"):
            found.decode(f"a/{i}", None, b"7", version=2)
    assert len(found._entries._found) <= 10
    assert len(found._entries._alone) <= 10


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cogwork.schema.json_schema", None)
    with pytest.raises(InvalidSchema, match=r"cogwork\[schema\]"):
        make_schema("json", NUMBER)


def test_a_schema_that_cannot_be_used_here_is_known_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has not all extras installed has the same registry."""
    event = Registry().register("prices", "json", NUMBER)
    monkeypatch.setitem(sys.modules, "cogwork.schema.json_schema", None)
    found = Registry()
    found.apply(event)
    reason = found.check("prices", None, b"7") or ""
    assert reason.startswith("the schema of prices cannot be used here: schemas need the extra")
    with pytest.raises(InvalidBody, match=r"cogwork\[schema\]"):
        found.encode("prices", 7)
    assert found.to_bytes() == event


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b'{"event": "unregistered", "address": "", "version": 1}',
        b"\n".join(map(msgspec.json.encode, (Registered("a", 1, "json", NUMBER), GONE))),
        msgspec.json.encode(Registered("a", 0, "json", NUMBER)),
        b"\n".join(msgspec.json.encode(Registered("a", v, "json", NUMBER)) for v in (3, 1)),
    ],
)
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidSchema):
        Registry.from_bytes(data)


changes = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a.*", "#"]), st.sampled_from([NUMBER, STRING, b"true", None])
    ),
    max_size=12,
)


@settings(deadline=None)
@given(changes, st.integers(0, 12))
def test_whoever_applies_the_events_agrees(
    given_changes: list[tuple[str, bytes | None]], joined_at: int
) -> None:
    one, stream = Registry(), []
    late: Registry | None = None
    for at, (address, definition) in enumerate(given_changes):
        if at == joined_at:
            late = Registry.from_bytes(one.to_bytes())
        if definition is not None:
            event = one.register(address, "json", definition, must_fit=False)
        elif one.versions(address):
            event = one.unregister(address)
        else:
            continue
        stream.append(event)
        one.apply(event)
        if late is not None:
            late.apply(event)
    other, compacted = Registry(), Registry.from_bytes(one.to_bytes())
    for event in stream:
        other.apply(event)
    everybody = [each for each in (one, other, compacted, late) if each is not None]
    assert len({each.to_bytes() for each in (one, other, compacted)}) == 1
    for address in ("a", "b", "a.x", "c"):
        for body in (b"7", b'"x"', b"null"):
            assert len({each.check(address, None, body) for each in everybody}) == 1
