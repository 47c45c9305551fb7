"""What a replicated queue hears of its owners elsewhere."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.container.federation.owners import Owners
from cogwork.nodes.queue import QueueNode
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS = "work/a"
SAID = Interest(InterestKind.OWNER, "", ADDRESS, consumers=7)


def made(woken: list[str]) -> Owners:
    """Return the owners of a virtual host with one queue, which is owned here."""
    node = object.__new__(QueueNode)
    node.replica = cast(
        "Any", SimpleNamespace(home=None, epoch=3, wake=lambda: woken.append(ADDRESS))
    )
    vhost = SimpleNamespace(name="", nodes={ADDRESS: node})
    core = SimpleNamespace(flush=lambda: None)
    mesh = SimpleNamespace(core=core, set_interest=lambda _interest: None)
    reach = SimpleNamespace(queue_federation=SimpleNamespace(own=lambda _address: None))
    return Owners(cast("Any", mesh), cast("Any", vhost), cast("Any", reach))


@pytest.mark.parametrize(
    "news",
    [
        pytest.param(lambda owners: owners.take_interest("b", SAID), id="another owner"),
        pytest.param(lambda owners: owners.lose_interest("b", SAID), id="an owner less"),
        pytest.param(lambda owners: owners.restore(), id="other ways"),
    ],
)
def test_a_queue_is_woken_where_it_may_have_another_owner(news: Callable[[Owners], None]) -> None:
    async def story() -> list[str]:
        woken: list[str] = []
        news(made(woken))
        await asyncio.sleep(0)
        return woken

    assert asyncio.run(story()) == [ADDRESS]
