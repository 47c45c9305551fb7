"""Clients that wait for a root: who does, and that nobody is forgotten or called twice."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from cogwork.container.cluster import held_clients
from cogwork.container.cluster.held_clients import HeldClients
from cogwork.plugin.engine.errors import Unavailable


class World:
    """A cluster whose root comes and goes, and newcomers."""

    def __init__(self) -> None:
        self.root: str | None = ""
        self.blocked: list[bool] = []
        self.told: list[str] = []
        self.looks = asyncio.Event()
        self.held = HeldClients(self.find_root, self.blocked.append)

    async def find_root(self) -> str:
        self.looks.set()
        if self.root is None:
            raise Unavailable("nobody answers")
        return self.root

    def come(self, name: str) -> SimpleNamespace:
        connection = SimpleNamespace(is_over=False)
        connection.flush = lambda: self.told.append(f"{name} is sent it")
        if not self.held.hold(connection, lambda: self.told.append(name)):
            self.told.append(f"{name} does not wait")
        return connection

    async def look(self) -> None:
        """Wait until what was found by the next two looks is taken."""
        for _ in range(2):
            self.looks.clear()
            await self.looks.wait()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(held_clients, "LOOK_S", 0.0)
    return World()


def test_without_the_setting_nobody_waits(world: World) -> None:
    world.come("x")
    assert (world.told, world.blocked) == (["x does not wait"], [])


def test_who_waits_goes_on_once_there_is_a_root(world: World) -> None:
    async def play() -> None:
        world.held.start()
        world.come("x")
        gone = world.come("y")
        await world.look()
        assert (world.told, world.blocked) == ([], [True])
        gone.is_over = True
        world.root = "a"
        await world.look()
        assert (world.told, world.blocked) == (["x", "x is sent it"], [True, False])
        world.come("z")
        world.root = None
        await world.look()
        world.come("w")
        assert world.told[2:] == ["z does not wait"]
        assert world.blocked == [True, False, True]
        await world.held.close()
        assert world.told[2:] == ["z does not wait"]

    asyncio.run(play())
