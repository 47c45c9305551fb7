"""What a container tells others of where its clients reach it."""

from __future__ import annotations

from cogwork.router.mesh.bounds import HOSTS_MAX
from cogwork.testing import TestContainer


def test_there_may_be_more_listeners_than_others_are_told_of() -> None:
    running = TestContainer("[[listen]]\nport = 0\n" * (HOSTS_MAX + 1), 0, "many").start()
    try:
        assert len(running.urls) == HOSTS_MAX + 1
    finally:
        running.stop()
