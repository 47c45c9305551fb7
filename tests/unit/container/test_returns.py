"""How many returned messages may wait for a client that does not read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cogwork.container.amqp091.returns import Returns

if TYPE_CHECKING:
    import pytest

    from cogwork.dataplane.amqp091.wire import BasicWire


def test_what_a_client_does_not_read_is_bounded_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wire = SimpleNamespace(bytes_out=0, unsent_bytes=0, blocked=False)
    returns = Returns(cast("BasicWire", wire), 3)
    returned = 0

    def give_back(count: int) -> None:
        nonlocal returned
        for _ in range(count):
            if returns.admit():
                wire.unsent_bytes += 10
                returns.note()
                returned += 1

    give_back(5)  # the socket takes all of it as soon as the batch ends
    assert returned == 5
    wire.blocked = True
    give_back(5)
    assert (returned, returns.dropped) == (5, 5)
    wire.bytes_out, wire.unsent_bytes = 30, 20
    give_back(5)
    assert (returned, returns.dropped) == (6, 9)
    wire.bytes_out, wire.unsent_bytes, wire.blocked = 60, 0, False
    give_back(1)
    assert (returned, returns.dropped) == (7, 9)
    assert len(caplog.records) == 1
