"""That everybody who applies the same events agrees, whatever they know of what was before."""

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from cogwork.schema import Conflict, Registry, SchemaError, entries, numbers, registry
from cogwork.schema.events import Registered, Unregistered

NUMBER = b'{"type": "number"}'
STRING = b'{"type": "string"}'
ADDRESSES = ("a", "b", "a.*", "#", "c")

Change = Callable[[bytes], bytes]


def former(event: bytes) -> bytes:
    """As a former release would have made it: it goes by what is there, and begins with 1 again."""
    fields = msgspec.json.decode(event)
    fields.pop("last", None)
    after = fields.pop("after", None)
    if after is not None:
        fields["version"] = after + 1
    return msgspec.json.encode(fields)


def former_snapshot(found: Registry) -> bytes:
    """As a former release would have written it: nothing of what was unregistered."""
    lines = found.to_bytes().split(b"\n")
    return b"\n".join(former(line) for line in lines if b'"registered"' in line)


def told(found: Registry, events: Sequence[bytes]) -> list[int | str]:
    """Apply events; return what became of each."""
    outcomes: list[int | str] = []
    for event in events:
        try:
            outcomes.append(found.apply(event).version)
        except SchemaError as error:
            outcomes.append(str(error))
    return outcomes


def listed(found: Registry) -> list[Registered]:
    return [each for address in ADDRESSES for each in found.versions(address)]


def history(
    dice: random.Random, makers: Sequence[Registry], count: int, *changes: Change
) -> list[bytes]:
    """Have makers, who may be behind, change what there is.

    Args:
        dice: Decides.
        makers: Each knows what was before.
        count: Of the events.
        changes: What becomes of an event before it is appended, one of these each time.
    """
    stream: list[bytes] = []
    read = [0] * len(makers)
    while len(stream) < count:
        at = dice.randrange(len(makers))
        maker, until = makers[at], dice.choice([len(stream), dice.randint(read[at], len(stream))])
        told(maker, stream[read[at] : until])
        read[at] = until
        address = dice.choice(ADDRESSES)
        definition = dice.choice([NUMBER, STRING, b"true", b""])
        try:
            if definition:
                event = maker.register(address, "json", definition, must_fit=False)
            else:
                event = maker.unregister(address)
        except SchemaError:
            continue
        stream.append(dice.choice(changes)(event) if changes else event)
    return stream


@pytest.mark.parametrize("seed", range(60))
def test_a_snapshot_and_what_came_after_it_make_the_same_as_the_whole_stream(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "GONE_MAX", 2)
    monkeypatch.setattr(entries, "VERSIONS_MAX", 3)
    monkeypatch.setattr(registry, "ADDRESSES_MAX", 4)
    monkeypatch.setattr(registry, "REGISTRY_BYTES_MAX", 160)
    dice = random.Random(seed)
    stream = history(dice, [Registry() for _ in range(3)], 60, former, bytes)
    whole = Registry()
    snapshots, outcomes = [], []
    for event in stream:
        snapshots.append(whole.to_bytes())
        outcomes += told(whole, [event])
    assert {type(each) for each in outcomes} == {int, str}
    for at in dice.sample(range(len(stream)), 10):
        late = Registry.from_bytes(snapshots[at])
        assert late.to_bytes() == snapshots[at]
        assert told(late, stream[at:]) == outcomes[at:]
        assert late.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("seed", range(60))
def test_who_begins_at_a_snapshot_of_a_former_release_never_parts_from_who_has_read_all(
    seed: int,
) -> None:
    dice = random.Random(seed)
    past = history(dice, [Registry(), Registry()], 40, former)

    def knowing(*, all_of_it: bool) -> Registry:
        found = Registry()
        told(found, past)
        return found if all_of_it else Registry.from_bytes(former_snapshot(found))

    stream = history(dice, [knowing(all_of_it=each) for each in (True, False, True, False)], 40)
    one, other = knowing(all_of_it=True), knowing(all_of_it=False)
    assert told(one, stream) == told(other, stream)
    assert listed(one) == listed(other)


@pytest.mark.parametrize("seed", range(60))
def test_no_number_is_given_twice_however_far_behind_its_makers_are(seed: int) -> None:
    stream = history(random.Random(seed), [Registry() for _ in range(4)], 80)
    found = Registry()
    given = set()
    for event in stream:
        for version in told(found, [event]):
            made = msgspec.json.decode(event)
            if made["event"] == "registered" and isinstance(version, int):
                assert (made["address"], version) not in given
                given.add((made["address"], version))


def test_who_does_not_know_a_number_takes_it_from_who_does() -> None:
    one = Registry()
    for definition in (NUMBER, STRING):
        one.apply(one.register("a", "json", definition, must_fit=False))
    one.apply(one.unregister("a"))
    other = Registry.from_bytes(former_snapshot(one))
    event = one.register("a", "json", NUMBER)
    assert [each.apply(event).version for each in (one, other)] == [3, 3]
    event = other.register("a", "json", NUMBER)
    assert [each.apply(event).version for each in (one, other)] == [4, 4]


def test_what_one_knows_of_numbers_everybody_knows_when_the_schema_is_taken_away() -> None:
    one = Registry()
    for definition in (NUMBER, STRING):
        one.apply(former(one.register("a", "json", definition, must_fit=False)))
    one.apply(former(one.unregister("a")))
    one.apply(former(one.register("a", "json", NUMBER)))
    other = Registry.from_bytes(former_snapshot(one))
    event = one.unregister("a")
    for each in (one, other):
        assert each.apply(event).version == 1
    event = other.register("a", "json", NUMBER)
    assert [each.apply(event).version for each in (one, other)] == [3, 3]


@pytest.mark.parametrize("version", [1, 2, 3, 7])
def test_of_an_older_stream_nothing_is_refused_by_what_not_everybody_knows(version: int) -> None:
    one = Registry()
    for definition in (NUMBER, STRING):
        one.apply(former(one.register("a", "json", definition, must_fit=False)))
    one.apply(former(one.unregister("a")))
    other = Registry.from_bytes(former_snapshot(one))
    event = msgspec.json.encode(Registered("a", version, "json", NUMBER))
    following = msgspec.json.encode(Registered("a", version + 1, "json", NUMBER))
    for each in (one, other):
        assert each.apply(event).version == version
        with pytest.raises(Conflict):
            each.apply(event)
        assert each.apply(following).version == version + 1


def test_a_former_release_begins_with_1_again_and_a_newer_one_goes_on() -> None:
    found = Registry()
    for definition in (NUMBER, STRING):
        found.apply(found.register("a", "json", definition, must_fit=False))
    found.apply(found.unregister("a"))
    assert found.apply(former(found.register("a", "json", NUMBER))).version == 1
    assert found.apply(found.register("a", "json", b"true")).version == 3


def test_numbers_go_on_after_the_highest_one_where_they_have_begun_again() -> None:
    found = Registry()
    for event in (
        Registered("a", 1, "json", NUMBER),
        Registered("a", 2, "json", STRING),
        Unregistered("a", 2),
        Registered("a", 1, "json", NUMBER),
    ):
        found.apply(former(msgspec.json.encode(event)))
    late = Registry.from_bytes(former_snapshot(found))
    made = found.register("a", "json", b"true")
    for each in (found, late):
        assert each.apply(made).version == 3
        again = Registry.from_bytes(each.to_bytes())
        assert again.to_bytes() == each.to_bytes()
        numbers_there = [each.version for each in again.versions("a")]
        assert numbers_there == [1, 3]
        definitions = {version: again.find("a", version) for version in (1, 2, 3, 4)}
        assert [number for number, there in definitions.items() if there is not None] == [1, 3]
        assert again.decode("a", None, b"null", version=3) is None
    late.apply(late.unregister("a"))
    assert late.apply(late.register("a", "json", NUMBER)).version == 4


def test_of_two_that_register_at_once_the_second_is_refused_whatever_they_know() -> None:
    one = Registry()
    for definition in (NUMBER, STRING):
        one.apply(former(one.register("a", "json", definition, must_fit=False)))
    one.apply(former(one.unregister("a")))
    other = Registry.from_bytes(former_snapshot(one))
    first, second = other.register("a", "json", NUMBER), one.register("a", "json", STRING)
    for each in (one, other):
        assert each.apply(first).version == 1
        with pytest.raises(Conflict, match="has version 1 of its schema by now"):
            each.apply(second)
        assert [it.definition for it in each.versions("a")] == [NUMBER]


def test_what_was_made_for_a_schema_that_was_taken_away_meanwhile_is_refused() -> None:
    found = Registry()
    first = found.register("a", "json", NUMBER)
    found.apply(first)
    late = found.register("a", "json", STRING, must_fit=False)
    found.apply(found.unregister("a"))
    for event in (first, late):
        with pytest.raises(Conflict, match="a has no schema by now"):
            found.apply(event)
    assert found.apply(found.register("a", "json", STRING)).version == 2
