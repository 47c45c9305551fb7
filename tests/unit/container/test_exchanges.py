"""What may be declared, bound and deleted, and what is told where it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hosted import LISTEN, Hosted

from cogwork.config.limits import Limits
from cogwork.config.settings import Configuration
from cogwork.container.connections.node_shares import BINDINGS, EXCHANGES
from cogwork.container.connections.shares import ALL, Holder
from cogwork.router.exchanges.binding import EXCHANGE, QUEUE, Destination
from cogwork.router.exchanges.errors import ExchangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.container.vhost.exchanges import Exchanges
    from cogwork.container.vhost.virtual_host import VirtualHost

QUEUE_Q = Destination(QUEUE, "q")
EXCHANGE_X = Destination(EXCHANGE, "x")
ANN = (ALL, Holder("user", "ann"))


@pytest.fixture
def exchanges() -> Exchanges:
    return hosted().exchanges


def hosted(**limits: int) -> VirtualHost:
    """Return a virtual host with a queue `q`."""
    configuration = Configuration(id="hosted", listeners=[LISTEN], limits=Limits(**limits))
    vhost = Hosted(configuration).container.vhosts[""]
    vhost.entry_of("queue/q")
    return vhost


def refused(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """Return code and text of a refusal."""
    with pytest.raises(ExchangeError) as caught:
        call(*arguments, **options)
    return f"{caught.value.code} {caught.value.text}"


def test_the_exchanges_of_the_protocol_are_there(exchanges: Exchanges) -> None:
    assert {each.name: each.kind for each in exchanges} == {
        "amq.direct": "direct",
        "amq.fanout": "fanout",
        "amq.headers": "headers",
        "amq.match": "headers",
        "amq.topic": "topic",
    }
    assert not exchanges.declare("amq.direct", "direct")


def test_a_declaration_is_repeated_or_is_another_one(exchanges: Exchanges) -> None:
    assert exchanges.declare("x", "topic", arguments={"alternate-exchange": "ae", "other": 1})
    assert not exchanges.declare("x", "topic", arguments={"alternate-exchange": "ae"})
    told = "406 inequivalent arg '{}' for exchange 'x' in vhost '/': received {} but current is {}"
    assert refused(exchanges.declare, "x", "direct") == told.format("type", "'direct'", "'topic'")
    other = {"alternate-exchange": "b"}
    assert refused(exchanges.declare, "x", "topic", arguments=other) == told.format(
        "alternate-exchange", "'b'", "'ae'"
    )
    for key in ("durable", "auto_delete", "internal"):
        there = key == "durable"
        says = told.format(key, f"'{not there}'".lower(), f"'{there}'".lower())
        assert refused(exchanges.declare, "x", "topic", **{key: not there}) == says
    assert refused(exchanges.declare, "x", "topic") == told.format(
        "alternate-exchange", "none", "the value 'ae' of type 'longstr'"
    )


def test_names_and_types_that_cannot_be(exchanges: Exchanges) -> None:
    assert refused(exchanges.declare, "amq.mine", "direct") == (
        "403 exchange name 'amq.mine' contains reserved prefix 'amq.*'"
    )
    assert refused(exchanges.declare, "", "direct") == (
        "403 operation not permitted on the default exchange"
    )
    assert refused(exchanges.declare, "x", "none") == "503 unknown exchange type 'none'"
    assert refused(exchanges.declare, "x", "os:system") == "503 unknown exchange type 'os:system'"
    assert refused(exchanges.declare, "a\x1bb", "direct").startswith("406 invalid exchange name")
    assert refused(exchanges.declare, "a" * 256, "direct").startswith("406 invalid exchange name")
    assert refused(exchanges.declare, "x", "direct", arguments={"alternate-exchange": 5}) == (
        "406 invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'"
    )
    assert exchanges.get("x") is None
    assert exchanges.declare("x", "direct")


def test_what_is_not_there_and_what_is_always_there(exchanges: Exchanges) -> None:
    assert refused(exchanges.demand, "x") == "404 no exchange 'x' in vhost '/'"
    assert refused(exchanges.entry, "x") == "404 no exchange 'x' in vhost '/'"
    assert not exchanges.delete("x")
    assert refused(exchanges.delete, "amq.none").startswith("403 deletion of system exchange")
    assert refused(exchanges.demand_named, "").startswith("403 operation not permitted")
    assert refused(exchanges.delete, "amq.topic") == (
        "403 deletion of system exchange 'amq.topic' in vhost '/' not allowed"
    )
    assert refused(exchanges.delete, "").startswith("403")


def test_an_internal_exchange_refuses_publishers(exchanges: Exchanges) -> None:
    exchanges.declare("x", "fanout", internal=True)
    assert refused(exchanges.entry, "x") == (
        "403 cannot publish to internal exchange 'x' in vhost '/'"
    )


def test_an_exchange_in_use_stays_if_that_is_wanted(exchanges: Exchanges) -> None:
    exchanges.declare("x", "fanout")
    exchanges.bind("x", QUEUE_Q)
    assert refused(exchanges.delete, "x", if_unused=True) == (
        "406 exchange 'x' in vhost '/' in use"
    )
    exchanges.unbind("x", QUEUE_Q)
    assert exchanges.delete("x", if_unused=True)


def test_both_ends_of_a_binding_have_to_be_there(exchanges: Exchanges) -> None:
    missing = Destination(QUEUE, "none")
    assert refused(exchanges.bind, "amq.topic", missing) == "404 no queue 'none' in vhost '/'"
    assert refused(exchanges.bind, "x", QUEUE_Q) == "404 no exchange 'x' in vhost '/'"
    assert refused(exchanges.bind, "amq.topic", EXCHANGE_X) == "404 no exchange 'x' in vhost '/'"
    assert refused(exchanges.bind, "", QUEUE_Q).startswith("403")
    assert refused(exchanges.bind, "amq.topic", Destination(EXCHANGE, "")).startswith("403")
    assert not exchanges.unbind("x", QUEUE_Q)
    assert not exchanges.unbind("amq.topic", QUEUE_Q)
    assert refused(exchanges.unbind, "", QUEUE_Q).startswith("403")


def test_a_key_or_argument_that_the_type_does_not_take(exchanges: Exchanges) -> None:
    assert refused(exchanges.bind, "amq.match", QUEUE_Q, b"", {"x-match": "some"}).startswith(
        '406 Invalid x-match field value <<"some">>'
    )
    exchanges.declare("h", "x-consistent-hash")
    assert refused(exchanges.bind, "h", QUEUE_Q, b"heavy").startswith("406 The binding key must")
    assert exchanges.bindings("h") == ()


def test_an_exchange_deletes_itself_with_the_last_binding_from_it(exchanges: Exchanges) -> None:
    exchanges.declare("x", "topic", auto_delete=True)
    exchanges.declare("up", "fanout", auto_delete=True)
    exchanges.bind("up", EXCHANGE_X)
    exchanges.bind("x", QUEUE_Q, b"a")
    exchanges.bind("x", QUEUE_Q, b"b")
    exchanges.unbind("x", QUEUE_Q, b"a")
    assert exchanges.get("x") is not None
    exchanges.unbind("x", QUEUE_Q, b"b")
    assert exchanges.get("x") is None
    assert exchanges.get("up") is None


def test_limits_are_told_and_what_goes_counts_no_longer() -> None:
    vhost = hosted(exchanges_per_user=1, bindings_per_user=2)
    exchanges = vhost.exchanges
    exchanges.declare("x", "topic", makers=ANN)
    assert refused(exchanges.declare, "y", "topic", makers=ANN) == (
        "406 user 'ann' has 1 exchanges, which is the limit (limits.exchanges_per_user = 1)"
    )
    for key in (b"a", b"b"):
        exchanges.bind("x", QUEUE_Q, key, makers=ANN)
    assert "limits.bindings_per_user = 2" in refused(exchanges.bind, "x", QUEUE_Q, b"c", makers=ANN)
    vhost.remove_node("queue/q")
    assert vhost.shares.count_of(BINDINGS, ANN[1]) == 0
    exchanges.delete("x")
    assert exchanges.declare("y", "topic", makers=ANN)
    vhost.entry_of("queue/q")
    exchanges.bind("y", QUEUE_Q, b"a", makers=ANN)
    exchanges.delete("y")
    assert vhost.shares.count_of(BINDINGS, ANN[1]) == 0
    assert vhost.shares.count_of(EXCHANGES, ALL) == 0
