"""Exchanges, shared queues and bindings as a cluster has them: equal commands make equal states."""

from __future__ import annotations

import random

import pytest

from cogwork.cluster import declarations as declarations_module
from cogwork.cluster import topology as topology_module
from cogwork.cluster.declarations import (
    VHOST,
    Command,
    Declarations,
    Declare,
    Delete,
    Outcome,
    Raise,
    Set,
    decode,
    encode,
)
from cogwork.cluster.topology import (
    TOPOLOGY_LEVEL,
    Bind,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    EndIncarnations,
    Owner,
    SharedBinding,
    Unbind,
)
from cogwork.plugin.engine.errors import Malformed

A1, A2, B1 = Owner("a", 1), Owner("a", 2), Owner("b", 1)


def raised(level: int = TOPOLOGY_LEVEL) -> Declarations:
    state = Declarations()
    for each in range(2, level + 1):
        assert state.apply(Raise(each, {"a": each}, ["a"])).has_changed
    return state


def exchange(name: str, kind: str = "direct", owner: Owner | None = None) -> DeclareExchange:
    return DeclareExchange("", name, kind, owner is None, False, False, b"", owner)


def queue(name: str, home: str = "a", owner: Owner | None = None) -> DeclareQueue:
    return DeclareQueue("", name, owner is None, False, b"", home, owner)


def bind(state: Declarations, source: str, name: str, kind: str = "queue") -> Outcome:
    find = state.topology.queue if kind == "queue" else state.topology.exchange
    found = find("", name)
    number = 0 if found is None else found.number
    return state.apply(Bind("", source, kind, name, number, b"k", b""))


def test_before_its_level_nothing_is_declared_and_the_octets_are_those_of_older_versions() -> None:
    state = raised(TOPOLOGY_LEVEL - 1)
    before = state.to_bytes()
    for command in (exchange("e"), queue("q"), EndIncarnations("a", 2)):
        assert "feature level 5 is needed" in state.apply(command).problem
    assert state.to_bytes() == before
    again = Declarations.from_bytes(before)
    assert (again.to_bytes(), again.digest) == (before, state.digest)


def test_what_is_declared_again_is_what_was_there_first() -> None:
    state = raised()
    first = state.apply(exchange("e"))
    assert first.has_changed
    before = state.digest
    again = state.apply(exchange("e", "fanout"))
    assert (again.has_changed, again.entry) == (False, first.entry)
    assert state.digest == before


def test_a_name_that_is_always_there_or_none_is_refused() -> None:
    state = raised()
    assert "reserved" in state.apply(exchange("amq.mine")).problem
    assert "octets" in state.apply(exchange("")).problem
    assert "octets" in state.apply(queue("x" * 2000)).problem
    assert len(state.topology) == 0


def test_both_ends_of_a_binding_must_be_there() -> None:
    state = raised()
    assert "no exchange 'e'" in bind(state, "e", "q").problem
    state.apply(exchange("e"))
    assert not bind(state, "e", "q").problem  # of a queue that no cluster has declared
    state.apply(queue("q"))
    state.apply(DeleteQueue("", "q", 0))
    number = 1 if state.topology.queue("", "q") is None else 0
    assert "any more" in state.apply(Bind("", "e", "queue", "q", number, b"", b"")).problem
    assert "any more" in bind(state, "e", "nowhere", "exchange").problem
    assert bind(state, "amq.topic", "amq.fanout", "exchange").has_changed


def test_a_binding_goes_with_either_end_and_before_it() -> None:
    state = raised()
    for command in (exchange("e"), exchange("f"), queue("q")):
        state.apply(command)
    assert bind(state, "e", "q").has_changed
    assert bind(state, "e", "f", "exchange").has_changed
    assert bind(state, "f", "q").has_changed
    gone = state.apply(DeleteExchange("", "f", 0, False)).changes
    assert [each.is_there for each in gone] == [False] * 3
    assert [isinstance(each.entry, SharedBinding) for each in gone] == [True, True, False]
    gone = state.apply(DeleteQueue("", "q", 0)).changes
    assert len(gone) == 2
    assert len(state.topology) == 1


def test_an_exchange_in_use_stays_where_it_is_to() -> None:
    state = raised()
    state.apply(exchange("e"))
    state.apply(queue("q"))
    bind(state, "e", "q")
    assert "in use" in state.apply(DeleteExchange("", "e", 0, True)).problem
    assert state.apply(Unbind("", "e", "queue", "q", b"k", b"")).has_changed
    assert not state.apply(Unbind("", "e", "queue", "q", b"k", b"")).has_changed
    assert state.apply(DeleteExchange("", "e", 0, True)).has_changed


def test_one_that_was_declared_anew_is_not_deleted_by_what_was_meant_for_the_other() -> None:
    state = raised()
    old = state.apply(queue("q")).entry
    assert old is not None
    state.apply(DeleteQueue("", "q", 0))
    state.apply(queue("q"))
    assert not state.apply(DeleteQueue("", "q", 1)).has_changed
    assert state.topology.queue("", "q") is not None


def test_one_command_ends_all_that_earlier_incarnations_owned() -> None:
    state = raised()
    for command in (
        *(exchange("kept"), queue("kept"), queue("old", owner=A1), exchange("older", owner=A1)),
        *(queue("new", owner=A2), queue("other", "b", B1)),
    ):
        assert state.apply(command).has_changed
    bind(state, "kept", "old")
    bind(state, "older", "kept")
    bind(state, "kept", "new")
    assert state.topology.has_ended(EndIncarnations("a", 2))
    keeping = EndIncarnations("a", 2, keeps_exchanges=True)
    gone = state.apply(keeping).changes
    assert {each.entry.key[:3] for each in gone} == {("queue", "", "old"), ("binding", "", "kept")}
    assert not state.topology.has_ended(keeping)
    gone = state.apply(EndIncarnations("a", 2)).changes
    assert {each.entry.key[:3] for each in gone} == {
        *(("exchange", "", "older"), ("binding", "", "older")),
    }
    assert not state.topology.has_ended(EndIncarnations("a", 2))
    assert not state.apply(EndIncarnations("a", 2)).has_changed
    assert state.topology.queue("", "new") is not None
    assert state.topology.queue("", "other") is not None


def test_a_replicated_queue_and_its_records_go_together() -> None:
    state = raised()
    assert "are not declared" in state.apply(queue("q", home="")).problem
    state.apply(Declare("queue", "", "queue/q", {"durability": "replicated"}))
    assert "replicated one" in state.apply(queue("q", home="a")).problem
    state.apply(exchange("e"))
    assert state.apply(queue("q", home="")).has_changed
    assert bind(state, "e", "q").has_changed
    gone = state.apply(Delete("queue", "", "queue/q"))
    assert gone.declaration is not None
    assert len(gone.changes) == 2
    assert state.apply(queue("q", home="a")).has_changed
    refused = state.apply(Declare("queue", "", "queue/q", {"durability": "replicated"}))
    assert "at its home 'a'" in refused.problem


def test_a_virtual_host_with_an_exchange_is_not_deleted() -> None:
    state = raised()
    assert state.apply(Set(VHOST, "", "shop", {}, None)).has_changed
    state.apply(DeclareExchange("shop", "e", "direct", True, False, False, b"", None))
    assert "has the exchange 'e'" in state.apply(Delete(VHOST, "", "shop")).problem
    state.apply(DeleteExchange("shop", "e", 0, False))
    assert state.apply(Delete(VHOST, "", "shop")).has_changed


def test_there_are_no_more_than_every_container_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_module, "ENTRIES_MAX", 2)
    state = raised()
    state.apply(queue("q"))
    state.apply(exchange("e"))
    assert "declared already" in bind(state, "e", "q").problem


@pytest.mark.parametrize(
    "command",
    [
        *(exchange("e", owner=A1), queue("q"), DeleteExchange("", "e", 3, True)),
        *(DeleteQueue("", "q", 3), Bind("", "e", "queue", "q", 7, b"\xff", b"\x00")),
        *(Unbind("", "e", "queue", "q", b"\xff", b""), EndIncarnations("a", 1 << 50)),
    ],
)
def test_a_command_is_read_as_it_was_written(command: Command) -> None:
    assert decode(encode(command)) == command
    with pytest.raises(Malformed):
        decode(encode(command)[:-1])


def some_command(chance: random.Random, state: Declarations) -> Command:
    """Return a command of any kind, with few names: so most meet something."""
    names = "pqrst"
    name, source = chance.choice(names), chance.choice([*names, "amq.topic"])
    owner = chance.choice([None, None, A1, A2, B1])
    kind = chance.choice(["queue", "exchange"])
    find = state.topology.queue if kind == "queue" else state.topology.exchange
    found = find("", name)
    number = 0 if found is None else found.number
    commands: list[Command] = [
        exchange(name, chance.choice(["direct", "topic"]), owner),
        queue(name, chance.choice("ab"), owner),
        Bind("", source, kind, name, number, bytes([chance.randrange(3)]), b""),
        Bind("", source, kind, name, number, bytes([chance.randrange(3)]), b""),
        Unbind("", source, kind, name, bytes([chance.randrange(3)]), b""),
        DeleteExchange("", name, 0, chance.random() < 0.5),
        DeleteQueue("", name, chance.choice([0, number])),
        EndIncarnations(chance.choice("ab"), chance.randrange(4)),
    ]
    return chance.choice(commands)


@pytest.mark.parametrize("seed", range(20))
def test_whenever_one_joins_its_digest_is_that_of_all_others(seed: int) -> None:
    chance = random.Random(seed)
    first, joined = raised(), [raised()]
    for number in range(400):
        command = some_command(chance, first)
        outcomes = [each.apply(command) for each in (first, *joined)]
        assert all(each == outcomes[0] for each in outcomes)
        if number % 100 == 50:
            joined.append(Declarations.from_bytes(first.to_bytes()))
        if number % 20 == 0:
            assert len({each.digest for each in (first, *joined)}) == 1
            assert len({each.to_bytes() for each in (first, *joined)}) == 1


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_what_does_not_meet_shows_only_in_numbers(seed: int) -> None:
    chance = random.Random(seed)
    bindings = [Bind("", "amq.topic", "queue", each, 0, b"k", b"") for each in "pqrst"]
    states = []
    for _ in range(2):
        chance.shuffle(bindings)
        state = raised()
        for each in bindings:
            assert state.apply(each).has_changed
        states.append(state)
    assert states[0].digest == states[1].digest
    assert states[0].to_bytes() == states[1].to_bytes()


def test_a_snapshot_is_of_the_moment_when_it_was_asked_for() -> None:
    state = raised()
    state.apply(exchange("e"))
    now, write = state.to_bytes(), state.writer()
    state.apply(exchange("f"))
    assert write() == now
    assert declarations_module.Declarations.from_bytes(write()).topology.exchange("", "f") is None
