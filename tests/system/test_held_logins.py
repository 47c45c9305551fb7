"""A container that has just started keeps newcomers waiting with their logins."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import cogwork

from .basic_clients import basic_connection
from .meshes import linked, meshed
from .served import OPEN, READY_TIMEOUT_S, within

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURATION = f"ready_timeout_s = 4.0\n{OPEN}\n[limits]\nauthentication_timeout_s = 0.5\n"


def test_who_waits_with_a_login_is_not_closed_for_it(tmp_path: Path) -> None:
    def head(name: str) -> str:
        cluster = '[cluster]\nprimaries = ["a", "b", "c"]\n'
        return f'data_dir = "{tmp_path / name}"\n{cluster}'

    edges = (("a", "b"), ("b", "c"), ("c", "a"))
    with meshed(tmp_path, "abc", edges, CONFIGURATION, head=head) as members:
        linked(members.values())
        for name in "abc":
            members[name].kill()
        a = members["a"]
        a.start()  # alone it never knows what the cluster has declared

        within(READY_TIMEOUT_S, a.listens, "it listens")

        async def come() -> None:
            async with cogwork.connect(a.url, connect_timeout_s=20.0) as client:
                await client.publish("topic/x", b"")

        begun_s = time.monotonic()
        asyncio.run(come())
        assert time.monotonic() - begun_s > 1.0, "it has waited for longer than a login may take"
        with basic_connection(a.served) as connection:
            assert connection.is_open
