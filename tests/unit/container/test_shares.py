"""Counting by holder: who may have no more, how often something may be done, who makes room."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.container.connections.newcomers import Newcomers
from cogwork.container.connections.shares import ALL, BURST_S, Bound, Holder, Rate, Tally
from cogwork.io.networks import PeerName

ANN, BOB = Holder("user", "ann"), Holder("user", "bob")
NEAR, FAR = Holder("source", "10.0.0.1"), Holder("source", "10.0.0.2")


@pytest.fixture
def tally() -> Tally:
    found = Tally("links")
    found.bounds = {"container": Bound(5, "links"), "user": Bound(2, "links_per_user")}
    return found


def test_who_has_its_share_is_told_by_name_value_and_key(tally: Tally) -> None:
    tally.take((ALL, ANN))
    assert tally.excess((ALL, ANN)) is None
    tally.take((ALL, ANN))
    assert str(tally.excess((ALL, ANN))) == (
        "user 'ann' has 2 links, which is the limit (limits.links_per_user = 2)"
    )
    assert tally.excess((ALL, BOB)) is None
    tally.give_back((ALL, ANN))
    assert tally.excess((ALL, ANN)) is None


def test_the_container_has_a_limit_of_its_own(tally: Tally) -> None:
    tally.take((ALL,), 5)
    assert str(tally.excess((ALL, ANN))) == (
        "the container has 5 links, which is the limit (limits.links = 5)"
    )


def test_a_kind_without_a_limit_may_have_anything(tally: Tally) -> None:
    tally.take((NEAR,), 1000)
    assert tally.excess((NEAR,)) is None


Steps = st.lists(st.tuples(st.sampled_from([ANN, BOB, NEAR, FAR]), st.integers(1, 5)))


@given(Steps)
def test_counts_are_those_of_what_was_taken_and_not_given_back(
    steps: list[tuple[Holder, int]],
) -> None:
    tally, model = Tally("things"), Counter[Holder]()
    for at, (holder, amount) in enumerate(steps):
        if at % 3 == 2 and model[holder] >= amount:
            tally.give_back((ALL, holder), amount)
            model[holder] -= amount
        else:
            tally.take((ALL, holder), amount)
            model[holder] += amount
    assert all(tally.count_of(holder) == count for holder, count in model.items())
    assert tally.count_of(ALL) == model.total()
    most = max(model.values(), default=0)
    users = [each for each in (ANN, BOB) if model[each]]
    largest = tally.largest("user")
    assert (largest is None) == (not users)
    assert largest is None or model[largest] == max(model[each] for each in users) <= most


@given(st.lists(st.floats(0, 0.5), max_size=200), st.floats(0.5, 50))
def test_nobody_does_more_than_its_rate_and_a_burst(pauses: list[float], per_s: float) -> None:
    rate, now_s, done_s = Rate(), 100.0, list[float]()
    for pause_s in pauses:
        now_s += pause_s
        wait_s = rate.wait_s(NEAR, now_s, per_s, longest_s=1.0)
        if wait_s is not None:
            assert 0.0 <= wait_s <= 1.0
            done_s.append(now_s + wait_s)
    assert done_s == sorted(done_s)
    for first, from_s in enumerate(done_s):
        for last, to_s in enumerate(done_s[first:], first):
            assert last - first + 1 <= (to_s - from_s + BURST_S) * per_s + 1.001


def test_who_is_refused_is_not_counted_and_others_do_not_wait() -> None:
    rate = Rate()
    taken = [rate.wait_s(NEAR, 10.0, 1.0) for _ in range(5)]
    assert taken == [0.0, 0.0, 0.0, None, None]
    assert rate.wait_s(FAR, 10.0, 1.0) == 0.0
    assert rate.wait_s(NEAR, 11.0, 1.0) == 0.0


def test_a_source_is_refused_beyond_its_share_of_the_newcomers() -> None:
    newcomers: Newcomers[int] = Newcomers()
    newcomers.most, newcomers.most_of_source = 3, 2
    assert newcomers.enter(NEAR, 1) is None
    assert newcomers.enter(NEAR, 2) is None
    assert "limits.unauthenticated_per_source = 2" in str(newcomers.excess(NEAR))
    assert newcomers.excess(FAR) is None
    newcomers.leave(NEAR, 1)
    newcomers.leave(NEAR, 1)
    assert newcomers.excess(NEAR) is None
    assert len(newcomers) == 1


def test_the_source_that_has_most_makes_room() -> None:
    newcomers: Newcomers[int] = Newcomers()
    newcomers.most, newcomers.most_of_source = 3, 3
    for number in (1, 2, 3):
        assert newcomers.excess(NEAR) is None
        newcomers.enter(NEAR, number)
    assert newcomers.excess(FAR) is None
    assert newcomers.enter(FAR, 4) == 1
    assert newcomers.excess(FAR) is None
    assert newcomers.enter(FAR, 5) == 2
    assert "limits.unauthenticated = 3" in str(newcomers.excess(FAR)), "it has the most itself"
    assert len(newcomers) == 3


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("/run/cogwork.sock", "/run/cogwork.sock"),
        ("", ""),
    ],
)
def test_a_source_is_an_address_or_a_network_of_ipv6(host: str, source: str) -> None:
    assert PeerName(host, 1).source == source
