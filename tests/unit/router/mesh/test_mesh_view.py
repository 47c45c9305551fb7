"""What one container shows of the mesh."""

from __future__ import annotations

from typing import Any

from cogwork.router.mesh.mesh import Mesh
from cogwork.router.mesh.messages import Interest, InterestKind
from cogwork.router.mesh.own import Own
from cogwork.router.mesh.view import SHARDS_MAX


def alone() -> Mesh:
    mesh = Mesh(Own(id="north", incarnation=1), 0.0)
    mesh.start(0.0)
    return mesh


def seen(mesh: Mesh) -> dict[str, Any]:
    """Let what is held back be told, and look."""
    for now_s in range(1, 5):
        mesh.tick(float(now_s))
    return mesh.snapshot(5.0)


def test_a_container_without_neighbours_sees_itself() -> None:
    found = seen(alone())
    assert (found["id"], found["links"], found["shards"]) == ("north", [], [])
    (own,) = found["containers"]
    assert (own["id"], own["neighbours"], own["cost"], own["unreachable_s"]) == (
        *("north", {}, 0),
        None,
    )


def test_interests_are_counted_and_shards_are_listed_by_backlog() -> None:
    mesh = alone()
    mesh.subscribe("", "topic/a.#", 0.0)
    for number in range(SHARDS_MAX + 5):
        shard = Interest(InterestKind.QUEUE, "", f"queue/{number}", 2, 0, 1 << number % 7)
        mesh.set_interest(shard, 0.0)
    found = seen(mesh)
    (own,) = found["containers"]
    assert own["interests"] == {
        "topic": 1,
        "anycast": 0,
        "queue": SHARDS_MAX + 5,
        "partitions": 0,
        "owner": 0,
        "disk": 0,
        "claim": 0,
    }
    backlogs = [shard["backlog"] for shard in found["shards"]]
    assert len(backlogs) == SHARDS_MAX
    assert backlogs == sorted(backlogs, reverse=True)
    first = found["shards"][0]
    assert (first["container"], first["virtual_host"], first["consumers"]) == ("north", "", 2)
    assert first["address"] == "queue/6"
