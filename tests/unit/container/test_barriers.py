"""Turns that are over: who waits for one is told."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from cogwork.container.journals.barriers import Barriers


def test_who_waits_for_a_turn_is_told_whatever_becomes_of_the_output() -> None:
    core = Mock(close_barrier=lambda: 1)
    core.release.side_effect = RuntimeError("broken")
    barriers = Barriers(core)
    told: list[bool] = []
    barriers.when_over(told.append)
    barriers.placed(barriers.end_turn(), 5)
    with pytest.raises(RuntimeError):
        barriers.durable(5)
    assert told == [True]
