"""What is told of who holds a replicated queue's records, and how its stream is found."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from cogwork.cluster.declarations import Declarations, Declare
from cogwork.consensus.errors import Unavailable
from cogwork.container.cluster.cluster import Cluster
from cogwork.container.cluster.queue_replicas import QueueReplicas
from cogwork.nodes.queue.options import QueueOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.container.virtual_host import VirtualHost


def replicas(vhosts: Mapping[str, VirtualHost] | None = None) -> QueueReplicas:
    return QueueReplicas(
        "a",
        None,  # type: ignore[arg-type]  # nothing is held
        None,  # type: ignore[arg-type]  # nothing is written
        vhosts or {},
        has_cluster=True,
    )


def test_a_queue_that_was_declared_before_an_option_was_known_is_found() -> None:
    async def story() -> str:
        options = {**asdict(QueueOptions(durability="replicated")), "maximum_length": 7}
        present = {key: value for key, value in options.items() if value is not None}
        older = {key: value for key, value in present.items() if key != "maximum_bytes"}
        cluster = Cluster(["a"], cast("Any", None), cast("Any", None))
        cluster.declarations.apply(Declare("queue", "", "work/a", older))
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def open_(name: str, _options: object) -> None:
            opened.set_result(name)

        found = replicas()
        found.start(
            cluster, cast("Any", SimpleNamespace(open=open_, streams={})), cast("Any", None)
        )
        queue = SimpleNamespace(vhost="", address="work/a", options=present)
        await found.open_stream(queue)  # type: ignore[arg-type]  # all that is asked of it
        found.close()
        return await opened

    assert asyncio.run(story()) == "queue work/a"


def test_a_queue_that_is_not_declared_yet_goes_on_to_declare_itself_no_more() -> None:
    """And stays as long as no majority could have declared it."""

    async def story() -> list[str]:
        done: list[str] = []
        answers = iter([Unavailable("b is away"), None])

        async def demand_majority() -> None:
            if (error := next(answers)) is not None:
                raise error

        async def delete(_kind: str, _vhost: str, name: str) -> bool:
            done.append(f"deleted {name}")
            return False

        cluster = SimpleNamespace(
            declarations=Declarations(), demand_majority=demand_majority, delete=delete
        )
        vhost = SimpleNamespace(remove_node=lambda name: done.append(f"removed {name}"))
        found = replicas({"": cast("Any", vhost)})
        options = asdict(QueueOptions(durability="replicated"))
        found.open("", "work/a", options, cast("Any", None), cast("Any", None))
        found._cluster = cast("Any", cluster)
        with pytest.raises(Unavailable):
            await found.withdraw("", "work/a")
        assert done == []
        assert await found.withdraw("", "work/a")
        assert not await found.withdraw("", "work/b")
        return done

    assert asyncio.run(story()) == ["removed work/a", "deleted work/a"]


def test_nobody_is_known_to_hold_a_queue_whose_stream_has_just_ended() -> None:
    def glance() -> None:
        raise Unavailable("the stream was deleted")

    queue, engine = SimpleNamespace(vhost="", address="work"), SimpleNamespace(glance=glance)
    held = replicas().held(queue, engine)  # type: ignore[arg-type]  # all that is asked of them
    assert held["voters"] == []
    assert held["moving"] is False
