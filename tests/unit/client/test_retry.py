"""Pauses between attempts to connect grow, are limited, and differ from client to client."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from cogwork.client.options import Retry


def test_pauses_double_up_to_a_limit() -> None:
    retry = Retry(first_s=1, factor=2, longest_s=5, jitter=0)
    assert list(islice(retry.waits_s(lambda: 0.5), 5)) == [1, 2, 4, 5, 5]


@given(st.floats(0, 1), st.floats(0, 1))
def test_jitter_only_shortens(jitter: float, drawn: float) -> None:
    steady = Retry(jitter=0).waits_s(lambda: drawn)
    jittered = Retry(jitter=jitter).waits_s(lambda: drawn)
    for longest_s, wait_s in islice(zip(steady, jittered, strict=True), 20):
        assert longest_s * (1 - jitter) <= wait_s <= longest_s
