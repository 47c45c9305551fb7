"""Delays for wrong passwords: growing, bounded, and nobody else's."""

from __future__ import annotations

from cogwork.container.security import login_delays
from cogwork.container.security.login_delays import (
    ENTRIES_MAX,
    FREE,
    NAME_LONGEST_S,
    QUIET_S,
    SOURCE_LONGEST_S,
    LoginDelays,
)


def failed(times: int, source: str = "10.0.0.1", name: str = "ann") -> LoginDelays:
    delays = LoginDelays()
    for _ in range(times):
        delays.fail(source, name, 0.0)
    return delays


def test_the_first_failures_are_free_and_then_each_doubles_the_wait() -> None:
    assert failed(FREE - 1).wait_s("10.0.0.1", "ann", 0.0) == 0.0
    waits = [failed(FREE + more).wait_s("10.0.0.1", "x", 0.0) for more in range(4)]
    assert waits == [login_delays.FIRST_S * 2**more for more in range(4)]
    assert failed(1000).wait_s("10.0.0.1", "x", 0.0) == SOURCE_LONGEST_S
    assert failed(1000).wait_s("10.0.0.1", "x", SOURCE_LONGEST_S) == 0.0


def test_who_names_a_user_does_not_lock_the_user_out() -> None:
    delays = failed(1000)
    assert delays.wait_s("10.0.0.2", "ann", 0.0) == NAME_LONGEST_S, "a stranger waits a moment"
    assert delays.wait_s("10.0.0.2", "bob", 0.0) == 0.0
    delays.succeed("10.0.0.2", "ann")
    assert delays.wait_s("10.0.0.2", "ann", 0.0) == 0.0, "known from there"
    assert delays.wait_s("10.0.0.1", "ann", 0.0) == SOURCE_LONGEST_S


def test_a_success_forgives_its_source_and_so_does_time() -> None:
    delays = failed(1000)
    delays.succeed("10.0.0.1", "bob")
    assert delays.wait_s("10.0.0.1", "bob", 0.0) == 0.0
    late = failed(1000)
    late.fail("10.0.0.1", "ann", QUIET_S + 1)
    assert late.wait_s("10.0.0.1", "x", QUIET_S + 1) == 0.0


def test_the_tables_are_bounded() -> None:
    delays = LoginDelays()
    for number in range(2 * ENTRIES_MAX):
        delays.fail(f"10.0.{number}", f"name {number}", 0.0)
        delays.succeed(f"11.0.{number}", "ann")
    assert len(delays._sources) == len(delays._names) == len(delays._good) == ENTRIES_MAX
