"""Outcomes of AMQP become types that programs can tell apart."""

from __future__ import annotations

import pytest

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.outcomes import Modified, Rejected
from cogwork.amqp.types import Symbol
from cogwork.client import errors
from cogwork.client.publishing.outcome import OutcomeState, outcome_of
from cogwork.dataplane.encoding.codec import encode


def test_accepted_is_no_error() -> None:
    outcome = outcome_of("queue/a", 0x24, None)
    assert outcome.is_accepted
    assert outcome.error() is None


def test_a_rejection_carries_its_reason() -> None:
    error = AmqpError(condition=Condition.NOT_ALLOWED, description="too old")
    state = encode(Rejected(error=error).to_described())
    raised = outcome_of("queue/a", 0x25, state).error()
    assert isinstance(raised, errors.Rejected)
    assert (raised.address, raised.condition) == ("queue/a", Condition.NOT_ALLOWED)
    assert str(raised) == "queue/a: too old (amqp:not-allowed)"


def test_a_rejection_may_have_no_reason() -> None:
    raised = outcome_of("queue/a", 0x25, encode(Rejected().to_described())).error()
    assert isinstance(raised, errors.Rejected)


def test_modified_tells_a_try_that_failed_from_none() -> None:
    failed = Modified(delivery_failed=True, message_annotations={Symbol("x-why"): "heat"})
    outcome = outcome_of("a", 0x27, encode(failed.to_described()))
    assert outcome.state is OutcomeState.MODIFIED
    assert outcome.annotations == {"x-why": "heat"}
    assert isinstance(outcome.error(), errors.InDoubt)
    given_back = outcome_of("a", 0x27, encode(Modified().to_described()))
    assert isinstance(given_back.error(), errors.Released)


@pytest.mark.parametrize(
    ("address", "doubt", "returned"),
    [
        ("queue/a", "a consumer had it and did not settle it", "nobody took the message"),
        (
            "stream/a",
            "the stream may have the message, or may not",
            "the message is not in the stream",
        ),
    ],
)
def test_an_outcome_is_told_as_it_is_meant_at_its_address(
    address: str, doubt: str, returned: str
) -> None:
    failed = encode(Modified(delivery_failed=True).to_described())
    assert str(outcome_of(address, 0x27, failed).error()) == f"{address}: {doubt}"
    assert str(outcome_of(address, 0x26, None).error()) == f"{address}: {returned}"


def test_a_lost_connection_leaves_doubt() -> None:
    assert isinstance(outcome_of("a", 0x01, None).error(), errors.InDoubt)


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (Condition.NOT_FOUND, errors.NotFound),
        (Condition.UNAUTHORIZED_ACCESS, errors.PermissionDenied),
        (Condition.NOT_ALLOWED, errors.LinkRefused),
    ],
)
def test_refusals_are_told_apart(condition: Symbol, kind: type[errors.LinkRefused]) -> None:
    raised = errors.refusal("queue/a", AmqpError(condition=condition, description="no"))
    assert type(raised) is kind
    assert raised.condition == condition
    assert "queue/a" in str(raised)
