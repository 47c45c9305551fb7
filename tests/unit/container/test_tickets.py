"""Turns that are over: who waits for one is told."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from cogwork.container.journals.tickets import Tickets


def test_who_waits_for_a_turn_is_told_whatever_becomes_of_the_output() -> None:
    core = Mock(close_ticket=lambda: 1)
    core.release.side_effect = RuntimeError("broken")
    tickets = Tickets(core)
    told: list[bool] = []
    tickets.when_over(told.append)
    tickets.placed(tickets.end_turn(), 5)
    with pytest.raises(RuntimeError):
        tickets.durable(5)
    assert told == [True]
