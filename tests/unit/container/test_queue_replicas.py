"""What is told of who holds a replicated queue's records, and how its stream is found."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

from cogwork.cluster.declarations import Declare
from cogwork.consensus.errors import Unavailable
from cogwork.container.cluster.cluster import Cluster
from cogwork.container.cluster.queue_replicas import QueueReplicas
from cogwork.nodes.queue.options import QueueOptions


def replicas() -> QueueReplicas:
    return QueueReplicas(
        "a",
        None,  # type: ignore[arg-type]  # nothing is held
        None,  # type: ignore[arg-type]  # nothing is written
        {},
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


def test_nobody_is_known_to_hold_a_queue_whose_stream_has_just_ended() -> None:
    def glance() -> None:
        raise Unavailable("the stream was deleted")

    queue, engine = SimpleNamespace(vhost="", address="work"), SimpleNamespace(glance=glance)
    held = replicas().held(queue, engine)  # type: ignore[arg-type]  # all that is asked of them
    assert held["voters"] == []
    assert held["moving"] is False
