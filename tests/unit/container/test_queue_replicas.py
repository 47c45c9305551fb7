"""What is told of who holds a replicated queue's records."""

from __future__ import annotations

from types import SimpleNamespace

from cogwork.consensus.errors import Unavailable
from cogwork.container.cluster.queue_replicas import QueueReplicas


def test_nobody_is_known_to_hold_a_queue_whose_stream_has_just_ended() -> None:
    def glance() -> None:
        raise Unavailable("the stream was deleted")

    replicas = QueueReplicas(
        "a",
        None,  # type: ignore[arg-type]  # nothing is held
        None,  # type: ignore[arg-type]  # nothing is written
        {},
        has_cluster=True,
    )
    queue, engine = SimpleNamespace(vhost="", address="work"), SimpleNamespace(glance=glance)
    held = replicas.held(queue, engine)  # type: ignore[arg-type]  # all that is asked of them
    assert held["voters"] == []
    assert held["moving"] is False
