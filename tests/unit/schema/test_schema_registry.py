"""Which schema an address has, and that everybody who applies the same events agrees."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.schema import InvalidBody, InvalidSchema, Registry, make_schema, registry
from cogwork.schema.schema import SCHEMA_BYTES_MAX

NUMBER = b'{"type": "number"}'
STRING = b'{"type": "string"}'


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
    assert reason == "the content-type of prices is application/json, not 'text/plain'"


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
        found.apply(found.register(address, "json", json.dumps({"const": value}).encode()))
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


def test_a_new_schema_replaces_the_old_one() -> None:
    found = filled(prices=NUMBER)
    assert found.check("prices", None, b"7") is None
    found.apply(found.register("prices", "json", STRING))
    assert found.check("prices", None, b"7") is not None
    assert len(found) == 1


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
        b'{"event": "registered", "address": "a", "kind": "json", "definition": "!"}',
        b'{"event": "registered", "address": "a", "kind": "json", "definition": "ew=="}',
        b'{"event": "unregistered", "address": "a", "version": 2}',
        b"[" * 100_000,
        b" " * (registry.EVENT_BYTES_MAX + 1),
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
    found.apply(found.register("a", "json", STRING))
    monkeypatch.setattr(registry, "REGISTRY_BYTES_MAX", 40)
    with pytest.raises(InvalidSchema, match="40 octets"):
        found.register("a", "json", NUMBER + b" " * 10)
    found.apply(found.unregister("b"))
    found.apply(found.register("a", "json", NUMBER + b" " * 10))


def test_addresses_that_were_looked_up_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "CACHE_MAX", 10)
    found = filled(a=NUMBER)
    for i in range(100):
        assert found.check(f"x{i}", None, b"7") is None
        assert found.check("a", None, b"null") is not None
    assert len(found._found) <= 10


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cogwork.schema.json_schema", None)
    with pytest.raises(InvalidSchema, match=r"cogwork\[schema\]"):
        make_schema("json", NUMBER)


changes = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "a.*", "#"]), st.sampled_from([NUMBER, STRING, b"true", None])
    ),
    max_size=12,
)


@settings(deadline=None)
@given(changes)
def test_whoever_applies_the_events_agrees(given_changes: list[tuple[str, bytes | None]]) -> None:
    one, stream = Registry(), []
    for address, definition in given_changes:
        if definition is None:
            stream.append(one.unregister(address))
        else:
            stream.append(one.register(address, "json", definition))
        one.apply(stream[-1])
    other, compacted = Registry(), Registry()
    for event in stream:
        other.apply(event)
    for event in one.events():
        compacted.apply(event)
    assert list(one.events()) == list(other.events()) == list(compacted.events())
    for address in ("a", "b", "a.x", "c"):
        for body in (b"7", b'"x"', b"null"):
            reasons = {each.check(address, None, body) for each in (one, other, compacted)}
            assert len(reasons) == 1
