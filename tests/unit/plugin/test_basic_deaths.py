"""What a dead letter says to clients of AMQP 0-9-1: RabbitMQ's headers."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.amqp091.content import BasicProperties, decode_properties, encode_properties
from cogwork.amqp091.types import Timestamp, UInt32
from cogwork.dataplane.message.basic import pack_basic, unpack_basic
from cogwork.dataplane.message.basic_conversion import amqp_from_basic, basic_from_amqp
from cogwork.dataplane.message.messages import Message
from cogwork.plugin.basic_deaths import DEATHS_MAX
from cogwork.plugin.dead_letters import dead_letter

DIED_MS = 1_790_000_000_123
_LAST = ("queue", "reason", "exchange")


def published(properties: BasicProperties | None = None) -> bytes:
    encoded = encode_properties(properties or BasicProperties(headers={"own": "header"}))
    return amqp_from_basic(pack_basic(b"orders", b"eu.new", encoded, b"body"))


def died(message: bytes, queue: str = "q", reason: str = "rejected", target: str = "") -> bytes:
    return dead_letter(message, f"queue/{queue}", reason, None, 0, died_ms=DIED_MS, target=target)


def read(message: bytes) -> tuple[str, str, dict[str, Any], BasicProperties]:
    exchange, key, octets, body = unpack_basic(basic_from_amqp(message))
    assert body == b"body"
    properties = decode_properties(octets)
    return exchange.decode(), key.decode(), properties.headers or {}, properties


def test_a_dead_letter_has_rabbitmqs_headers() -> None:
    exchange, key, headers, _ = read(died(published(), target="exchange/dlx"))
    assert (exchange, key, headers["own"]) == ("dlx", "eu.new", "header")
    assert headers["x-death"] == [
        {
            "count": 1,
            "reason": "rejected",
            "queue": "q",
            "time": Timestamp(DIED_MS // 1000),
            "exchange": "orders",
            "routing-keys": ["eu.new"],
        }
    ]
    assert headers["x-first-death-queue"] == headers["x-last-death-queue"] == "q"
    assert headers["x-first-death-reason"] == headers["x-last-death-reason"] == "rejected"
    assert headers["x-first-death-exchange"] == headers["x-last-death-exchange"] == "orders"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("expired", "expired"),
        ("maximum-length", "maxlen"),
        ("delivery-count-exceeded", "delivery_limit"),
    ],
)
def test_reasons_are_said_in_rabbitmqs_words(reason: str, said: str) -> None:
    assert read(died(published(), reason=reason))[2]["x-death"][0]["reason"] == said


@pytest.mark.parametrize(
    ("target", "route"),
    [
        ("exchange/dlx/other", ("dlx", "other")),
        ("exchange/a%2Fb", ("a/b", "eu.new")),
        ("exchange/amq.default/dead", ("", "dead")),
        ("queue/dead", ("", "dead")),
        ("topic/dead", ("orders", "eu.new")),
    ],
)
def test_it_says_the_route_by_which_it_is_sent(target: str, route: tuple[str, str]) -> None:
    assert read(died(published(), target=target))[:2] == route


def test_deaths_of_one_kind_are_counted_and_the_newest_is_the_first() -> None:
    message = died(published(), "first", "expired", "exchange/dlx")
    message = died(message, "second", "rejected", "exchange/dlx")
    message = died(message, "first", "expired", "exchange/dlx")
    headers = read(message)[2]
    assert [(each["queue"], each["reason"], each["count"]) for each in headers["x-death"]] == [
        ("first", "expired", 2),
        ("second", "rejected", 1),
    ]
    assert headers["x-death"][1]["exchange"] == "dlx"
    assert (headers["x-first-death-queue"], headers["x-last-death-queue"]) == ("first", "first")
    assert headers["x-first-death-exchange"] == "orders"


def test_its_expiration_is_kept_where_it_does_no_harm() -> None:
    message = died(published(BasicProperties(expiration="5000")), reason="expired")
    _, _, headers, properties = read(message)
    assert properties.expiration is None
    assert headers["x-death"][0]["original-expiration"] == "5000"


def test_no_more_deaths_are_kept_than_a_message_should_carry() -> None:
    message = published()
    for number in range(DEATHS_MAX + 5):
        message = died(message, f"q{number}")
    deaths = read(message)[2]["x-death"]
    assert [each["queue"] for each in deaths] == [f"q{n}" for n in range(DEATHS_MAX + 4, 4, -1)]


def test_deaths_that_a_publisher_says_are_none_of_its_own() -> None:
    once = read(died(published(), "first"))[2]
    headers = read(died(published(BasicProperties(headers=once)), "second"))[2]
    assert [(each["queue"], each["count"]) for each in headers["x-death"]] == [("second", 1)]
    assert headers["x-first-death-queue"] == headers["x-last-death-queue"] == "second"


def test_it_has_no_header_that_only_amqp_1_0_reads() -> None:
    said = read(died(died(published(), "first"), "second"))[2]
    assert {name for name in said if name.startswith("x-")} == {
        "x-death",
        *(f"x-{which}-death-{name}" for which in ("first", "last") for name in _LAST),
    }


def test_a_dead_letter_of_amqp_1_0_has_no_number_that_clients_do_not_know() -> None:
    said = read(died(Message(b"body").encode()))[2]
    numbers = [value for value in said.values() if isinstance(value, int)]
    assert numbers
    assert not [value for value in numbers if isinstance(value, UInt32)]


@pytest.mark.parametrize("forged", ["text", 5, ["text", 1], [{"count": "many", "queue": "q"}], {}])
def test_what_a_publisher_forges_does_no_harm(forged: object) -> None:
    headers: dict[str, Any] = {"x-death": forged}
    message = died(published(BasicProperties(headers=headers)))
    assert read(message)[2]["x-death"][0]["count"] == 1


def test_messages_of_other_protocols_say_nothing_of_it() -> None:
    message = Message.decode(died(Message(b"body").encode()))
    assert "x-death" not in message.annotations
