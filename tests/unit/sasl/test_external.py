"""EXTERNAL: a certificate's name, and the name that a peer wants to act as (RFC 4422 §3.4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from cogwork.amqp.types import Symbol
from cogwork.sasl.mechanisms import MECHANISMS
from cogwork.sasl.sides import Failure, ServerContext, Success

if TYPE_CHECKING:
    from cogwork.sasl.sides import Step, Users

EXTERNAL = Symbol("EXTERNAL")


class OneUser:
    """Knows robot."""

    def has(self, name: str) -> bool:
        return name == "robot"


def respond(certificate_name: str | None, response: bytes | None) -> Step:
    """Return what a server says to a peer with a certificate."""
    users = cast("Users", OneUser())
    context = ServerContext(users, (EXTERNAL,), certificate_name)
    return cast("Step", MECHANISMS[EXTERNAL].server(context).respond(response))


@pytest.mark.parametrize("response", [None, b"", b"robot"])
def test_a_peer_acts_as_its_certificate_says(response: bytes | None) -> None:
    assert respond("robot", response) == Success("robot")


@pytest.mark.parametrize("response", [b"admin", b"robot\x00admin", b"\xff", b"x" * 100_000])
def test_a_peer_that_wants_to_act_as_another_is_refused(response: bytes) -> None:
    refused = respond("robot", response)
    assert isinstance(refused, Failure)
    assert refused.reason.startswith("it wants to act as b'")
    assert len(refused.reason) < 400


def test_a_certificate_of_nobody_is_refused() -> None:
    assert respond(None, None) == Failure("its certificate names nobody")
    assert respond("stranger", b"") == Failure("unknown user", "stranger")
