"""What became of a message that was sent (AMQP 1.0 §3.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

from cogwork.amqp.composite import Composite
from cogwork.amqp.errors import Condition
from cogwork.amqp.kinds import composite_from
from cogwork.amqp.outcomes import Modified as ModifiedState
from cogwork.amqp.outcomes import Rejected as RejectedState
from cogwork.amqp.types import Described, Symbol
from cogwork.client.errors import ClientError, InDoubt, Rejected, Released
from cogwork.dataplane.client.outbox import ACCEPTED_CODE, IN_DOUBT_CODE
from cogwork.dataplane.encoding.codec import decode

__all__ = (
    "NO_CONNECTION",
    "NO_CREDIT",
    "Outcome",
    "OutcomeState",
    "meant_for",
    "outcome_of",
    "unsent",
)

F = TypeVar("F", bound=ClientError)


STREAMS = "stream/"


class _Words(NamedTuple):
    """What an outcome means: streams have no consumers that take a message away."""

    of_others: str
    of_streams: str


DOUBTS = _Words(
    "a consumer had it and did not settle it", "the stream may have the message, or may not"
)
LOST = "the connection was lost before the outcome was known"
NO_CREDIT = "no credit, as nobody takes messages there, or who does takes no more now"
NO_CONNECTION = "no connection"
"""What a message waits for before it is sent."""

RETURNS = _Words("nobody took the message", "the message is not in the stream")


class OutcomeState(StrEnum):
    """The outcomes of AMQP, and the one that comes from losing a connection."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    MODIFIED = "modified"
    IN_DOUBT = "in-doubt"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One message's outcome.

    Attributes:
        address: Where it was sent.
        state: What became of it.
        condition: Why it was rejected, or not even sent, for programs.
        description: Why it was rejected, not even sent, or is in doubt, for people.
        delivery_failed: Whether a consumer tried, and failed (`modified`).
        undeliverable_here: Whether that consumer does not want it again (`modified`).
        annotations: What a consumer wants remembered of it (`modified`).
    """

    address: str
    state: OutcomeState
    condition: Symbol | None = None
    description: str = ""
    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: dict[Symbol, object] = field(default_factory=dict)

    @property
    def is_accepted(self) -> bool:
        """Whether all is well."""
        return self.state is OutcomeState.ACCEPTED

    def error(self) -> ClientError | None:
        """Return the exception that says so; None where all is well."""
        if self.is_accepted:
            return None
        if self.state is OutcomeState.REJECTED:
            return Rejected(self.address, self.condition, self.description or "rejected")
        if self.state is OutcomeState.IN_DOUBT:
            return InDoubt(self.address, None, self.description or LOST)
        if self.delivery_failed:
            return InDoubt(self.address, None, self._in_words(DOUBTS))
        return Released(self.address, self.condition, self.description or self._in_words(RETURNS))

    def _in_words(self, words: _Words) -> str:
        return words.of_streams if _is_stream(self.address) else words.of_others


_STATES = {
    ACCEPTED_CODE: OutcomeState.ACCEPTED,
    0x25: OutcomeState.REJECTED,
    0x26: OutcomeState.RELEASED,
    0x27: OutcomeState.MODIFIED,
    IN_DOUBT_CODE: OutcomeState.IN_DOUBT,
}


def outcome_of(address: str, code: int, state: bytes | None) -> Outcome:
    """Make an outcome of what the data plane has.

    Args:
        address: Where the message was sent.
        code: The outcome's descriptor code.
        state: The outcome encoded, where it says more than its code.
    """
    found = _decoded(state) if state else None
    if isinstance(found, RejectedState) and found.error is not None:
        return Outcome(
            address,
            _STATES[code],
            condition=found.error.condition,
            description=found.error.description or "",
        )
    if isinstance(found, ModifiedState):
        return Outcome(
            address,
            OutcomeState.MODIFIED,
            delivery_failed=found.delivery_failed,
            undeliverable_here=found.undeliverable_here,
            annotations=found.message_annotations or {},
        )
    return Outcome(address, _STATES[code])


def meant_for(address: str, error: F) -> F:
    """Say of a failure that came by the relay, which knows no address, what it means at one.

    Args:
        address: Where the message was sent.
        error: Rejected, Released or InDoubt.
    """
    description = error.description
    if _is_stream(address):
        for words in (DOUBTS, RETURNS):
            description = words.of_streams if description == words.of_others else description
    return type(error)(address, error.condition, description)


def unsent(address: str, wanting: str, timeout_s: float) -> Released:
    """Return the exception for a message that was taken back when its time was over.

    Args:
        address: Where it was to be sent.
        wanting: What there was none of.
        timeout_s: How long it had.
    """
    text = f"it was not sent within {timeout_s:g} s: there was {wanting}"
    return Released(address, Condition.RESOURCE_LIMIT_EXCEEDED, text)


def _is_stream(address: str) -> bool:
    return address.removeprefix("/").startswith(STREAMS)


def _decoded(state: bytes) -> Composite | None:
    value, _ = decode(state, 0)
    found = composite_from(value) if isinstance(value, Described) else None
    return found if isinstance(found, Composite) else None
