"""What the cluster has declared, and a container cannot have: it can be given up all the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hosted import LISTEN

from cogwork.config.settings import Configuration, Queue
from cogwork.container.container import Container
from cogwork.container.vhost.stream_declarations import StreamDeclarations
from cogwork.plugin.management import ManagementError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from cogwork.cluster.declarations import Value

OLD: Mapping[str, tuple[str, str, Mapping[str, Value]]] = {
    "stream": ("stream/old", "old", {"engine": "raft", "capture": ["queue/x"]}),
    "queue": ("old\x1b", "old\x1b", {"durability": "replicated"}),
}
"""What an earlier version may have taken: the address, the name, and the options."""


def play(folder: Path, story: Callable[[Container], Awaitable[None]]) -> None:
    """Play a story with a container that is a cluster by itself."""

    async def run() -> None:
        queues = [Queue(address="mine")]
        configuration = Configuration(
            id="a", listeners=[LISTEN], data_dir=str(folder), queues=queues
        )
        container = Container(configuration)
        container.replication.start()
        try:
            async with asyncio.timeout(30):
                await container.replication.cluster.when_current()
                await story(container)
        finally:
            await container.replication.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", OLD)
def test_what_is_refused_now_can_be_deleted(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address, name, options = OLD[kind]

    async def story(container: Container) -> None:
        cluster, view = container.replication.cluster, container.vhosts[""].view
        assert view is not None

        async def delete() -> bool:
            if kind == "stream":
                return await view.delete_stream(address)
            return view.delete_queue(address) or await view.withdraw_queue(address)

        assert not await delete()
        await cluster.declare(kind, "", name, options)
        assert address not in container.vhosts[""].nodes
        assert f"to delete it everywhere, run `cogwork {kind} delete URL {name!r}`" in caplog.text
        assert await delete()
        while cluster.declarations.find(kind, "", name) is not None:
            await asyncio.sleep(0.01)
        assert not await delete()

    play(tmp_path, story)


def test_what_is_deleted_takes_nothing_with_it_that_is_not_the_clusters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(container: Container) -> None:
        cluster, vhost = container.replication.cluster, container.vhosts[""]
        StreamDeclarations(vhost).declare("stream/mine", {"engine": "orb"})
        there = [vhost.entry_of("mine"), vhost.entry_of("stream/mine")]
        await cluster.declare("queue", "", "mine", {"durability": "replicated"})
        await cluster.declare("stream", "", "mine", {"engine": "orb", "home": "b"})
        for kind in ("queue", "stream"):
            await cluster.delete(kind, "", "mine")
        assert [vhost.entry_of("mine"), vhost.entry_of("stream/mine")] == there
        assert "to delete it everywhere" not in caplog.text

    play(tmp_path, story)


def test_a_replicated_queue_is_had_where_it_is_declared_whatever_its_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(container: Container) -> None:
        cluster, view = container.replication.cluster, container.vhosts[""].view
        assert view is not None
        assert view.declare_queue("plain/a", {"durability": "replicated"})
        while (found := cluster.declarations.find("queue", "", "plain/a")) is None:
            await asyncio.sleep(0.01)
        assert "cannot open the cluster" not in caplog.text
        # As another container has it, which heard of it by this.
        container.vhosts[""].remove_node("plain/a")
        assert view.declare_queue("plain/a", found.options)
        assert not view.declare_queue("plain/a", {"durability": "replicated"})
        with pytest.raises(ManagementError, match="in_doubt = redeliver, not park"):
            view.declare_queue("plain/a", {"durability": "replicated", "in_doubt": "park"})

    play(tmp_path, story)
