"""Limits of one user, in the place of those that hold for each; and who is told to use most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import cogwork
from cogwork.config.reading import parse

from .stories import eventually, story
from .test_shares import limited, told_users

if TYPE_CHECKING:
    from cogwork.container.container import Container

OWN = "limits = { connections = 2, queues = 2 }\n"


def told_with(monkeypatch: pytest.MonkeyPatch, own: str) -> str:
    """Configure ann, who has limits of her own, and bob, who has none."""
    told = told_users(monkeypatch)
    return told.replace('name = "ann"\n', f'name = "ann"\n{own}')


def urls(container: Container) -> tuple[str, str]:
    ann, bob = (container.endpoints[0].replace("://", f"://{it}:pw@") for it in ("ann", "bob"))
    return ann, bob


@story
async def test_a_user_has_less_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with limited("queues_per_user = 3", told_with(monkeypatch, OWN)) as container:
        ann, bob = urls(container)
        async with cogwork.connect(ann) as hers, cogwork.connect(ann):
            with pytest.raises(
                cogwork.ConnectError, match=r"user 'ann' has 2 connections.*user.limits.connections"
            ):
                async with cogwork.connect(ann):
                    pass
            await hers.publish("queue/a", 1)
            await hers.publish("queue/b", 2)
            with pytest.raises(cogwork.LinkRefused, match=r"\(user.limits.queues = 2\)"):
                await hers.publish("queue/c", 3)
            async with cogwork.connect(bob) as his, cogwork.connect(bob), cogwork.connect(bob):
                for number in range(3):
                    await his.publish(f"queue/bob-{number}", number)
        found = container.uses()
        assert found["queues_per_user"].holder.name == "bob"
        assert found["queues_per_user"].has == 3
        assert found["user/ann/queues"].has == 2


@story
async def test_a_user_has_more_than_others_until_a_reload(monkeypatch: pytest.MonkeyPatch) -> None:
    told = told_with(monkeypatch, OWN)
    limits = "connections_per_user = 1"
    async with limited(limits, told) as container:
        ann, bob = urls(container)
        async with cogwork.connect(ann) as hers, cogwork.connect(ann):
            async with cogwork.connect(bob):
                with pytest.raises(cogwork.ConnectError, match="user 'bob' has 1 connections"):
                    async with cogwork.connect(bob):
                        pass
            changed = parse(
                f'id = "north"\n[[listen]]\nport = 0\n{told.replace(OWN, "")}[limits]\n{limits}\n',
                "test",
            )
            assert container.reconfigure(changed) == []
            await hers.publish("queue/a", 1)  # who is there stays, and is not logged out
        await eventually(lambda: not container.peers.connections, "all have gone")
        async with cogwork.connect(ann):
            with pytest.raises(cogwork.ConnectError, match=r"limits.connections_per_user = 1"):
                async with cogwork.connect(ann):
                    pass


@story
async def test_a_connections_row_tells_what_it_has() -> None:
    async with (
        limited("links = 100") as container,
        cogwork.connect(container.endpoints[0]) as client,
    ):
        row = (await client.manage("READ", {"type": "connection", "name": "1"})).body
        assert isinstance(row, dict)
        assert (row["dynamic_addresses"], row["held_bytes"]) == (1, 0)
