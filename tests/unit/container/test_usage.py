"""How much a container has to do, and how many clients it has beyond its share."""

from __future__ import annotations

import pytest

from cogwork.container.connections.usage import load_of, surplus_of
from cogwork.router.mesh.messages import Figures


def test_messages_and_memory_count_as_some_clients() -> None:
    assert load_of(Figures(connections=9)) == 0
    assert load_of(Figures(messages=25_000, memory_bytes=1 << 31)) == 4.5


@pytest.mark.parametrize(
    ("own", "others", "surplus"),
    [
        (60.0, [0.0, 0.0], 40),
        (20.4, [20.0, 20.0], 0),
        (10.0, [60.0], 0),
        (7.0, [], 0),
        (4.0, [1.0], 1),
    ],
)
def test_what_is_beyond_the_mean_is_a_surplus(
    own: float, others: list[float], surplus: int
) -> None:
    assert surplus_of(own, others) == surplus
