"""Arguments of queue.declare as options of a queue, and the other way round."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.amqp091.errors import ProtocolError
from cogwork.amqp091.types import Int8, Int64
from cogwork.container.amqp091.queue_arguments import arguments_of, check_equal, options_of

PLACE = "queue 'q' in vhost '/'"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({"x-message-ttl": 1500}, {"ttl_s": 1.5}),
        ({"x-max-length": 5}, {"maximum_length": 5, "maximum_length_policy": "drop-oldest"}),
        (
            {"x-max-length-bytes": 5000, "x-overflow": "reject-publish"},
            {"maximum_bytes": 5000, "maximum_length_policy": "reject"},
        ),
        (
            {"x-max-length": 1, "x-overflow": "reject-publish-dlx"},
            {"maximum_length": 1, "maximum_length_policy": "reject-dead-letter"},
        ),
        ({"x-max-priority": 3}, {"priorities": 4}),
        ({"x-delivery-limit": 2}, {"maximum_delivery_count": 3}),
        ({"x-dead-letter-exchange": "dlx"}, {"dead_letter": "exchange/dlx"}),
        (
            {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k"},
            {"dead_letter": "exchange/dlx/k"},
        ),
        (
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
            {"dead_letter": "queue/dead"},
        ),
        ({"x-dead-letter-exchange": ""}, {"dead_letter": "exchange/amq.default"}),
    ],
)
def test_arguments_are_options_and_options_are_arguments(
    arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    found = options_of(arguments, PLACE)
    assert {**found, **options} == found
    assert arguments_of(found) == arguments


def test_what_is_about_rabbitmqs_own_work_is_ignored() -> None:
    ignored: dict[str, object] = {"x-queue-mode": "lazy", "x-queue-version": 2, "mine": True}
    assert options_of(ignored, PLACE) == options_of({}, PLACE)


def test_priorities_are_heeded_if_somebody_asks_for_them() -> None:
    assert options_of({}, PLACE)["priorities"] == 1
    assert options_of({"x-max-priority": 255}, PLACE)["priorities"] == 256


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"x-message-ttl": True}, "expected integer, got bool"),
        ({"x-message-ttl": 1.5}, "expected integer, got double"),
        ({"x-max-length": -5}, "{value_negative,-5}"),
        ({"x-queue-mode": "eager"}, "invalid_queue_mode"),
        ({"x-single-active-consumer": "yes"}, "{unacceptable_type,longstr}"),
        ({"x-queue-type": b"classic"}, "{unacceptable_type,binary}"),
        ({"x-overflow": "reject"}, "invalid_overflow"),
    ],
)
def test_a_value_that_cannot_be_is_named(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        options_of(arguments, PLACE)
    assert caught.value.code == 406
    assert caught.value.explanation.startswith(f"invalid arg '{next(iter(arguments))}' for {PLACE}")
    assert reason in caught.value.explanation


def test_an_exchange_for_the_dead_is_a_name() -> None:
    with pytest.raises(ProtocolError, match="invalid type 'signedint' for arg 'x-dead-letter-exch"):
        options_of({"x-dead-letter-exchange": 7}, PLACE)


def test_a_length_beyond_what_a_queue_counts_is_no_bound() -> None:
    assert options_of({"x-max-length": 1 << 40}, PLACE)["maximum_length"] == (1 << 30) - 1


def test_numbers_of_any_width_are_the_same() -> None:
    check_equal({"x-max-length": Int8(5)}, {"x-max-length": Int64(5)}, PLACE)


def test_what_holds_anyhow_may_be_said_or_not() -> None:
    check_equal({"x-queue-type": "classic"}, {}, PLACE)
    check_equal({}, {"x-overflow": "drop-head"}, PLACE)
    with pytest.raises(ProtocolError, match="x-queue-type"):
        check_equal({"x-queue-type": "quorum"}, {}, PLACE)
