"""When a container that has started takes clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cogwork.container.mesh.readiness import Readiness


def mesh(*diallers: object) -> SimpleNamespace:
    neighbours = SimpleNamespace(digest=1, active={})
    return SimpleNamespace(
        diallers=list(diallers), peer_links=[], mesh=SimpleNamespace(neighbours=neighbours)
    )


def readiness(service: object) -> Readiness:
    return Readiness(cast("Any", service), timeout_s=3.0)


def test_alone_it_is_ready_at_once() -> None:
    made = readiness(mesh())
    made.start(0.0)
    assert made.is_reached


def test_it_waits_for_what_else_has_to_be_so() -> None:
    made = readiness(mesh())
    is_current = False
    made.conditions.append(lambda: is_current)
    calls: list[str] = []
    made.start(0.0)
    made.when_reached(lambda: calls.append("ready"))
    made.look(1.0)
    assert not made.is_reached
    is_current = True
    made.look(1.1)
    assert made.is_reached
    assert calls == ["ready"]
    made.look(1.2)
    assert calls == ["ready"], "once"


def test_it_waits_for_a_neighbours_knowledge_and_not_for_ever() -> None:
    dialler = SimpleNamespace(has_failed=False, peer_link=None)
    service = mesh(dialler)
    made = readiness(service)
    made.start(0.0)
    made.look(1.0)
    assert not made.is_reached
    service.mesh.neighbours.active = {"b": SimpleNamespace(digest=2)}
    made.look(1.1)
    assert not made.is_reached
    made.look(3.0)
    assert made.is_reached


def test_who_reaches_nobody_is_alone() -> None:
    made = readiness(mesh(SimpleNamespace(has_failed=True, peer_link=None)))
    made.start(0.0)
    made.look(0.1)
    assert made.is_reached
