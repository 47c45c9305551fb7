"""A container that leaves, and others that go while they take its items."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import pytest

from cogwork.amqp.types import Symbol, UInt
from cogwork.container.federation import moving
from cogwork.container.federation.move_link import ForgottenError, MoveError
from cogwork.container.federation.moving import Mover, items_of
from cogwork.container.vhost.node_table import NodeTable
from cogwork.dataplane.message.messages import Message
from cogwork.nodes.queue import QueueNode
from cogwork.plugin.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ITEMS, BATCH = 30, 10


class Mesh:
    """Containers that take items, near ones first.

    Attributes:
        taken: How many items each has activated.
        gone: Who cannot be reached.
        forgets: Who has been started anew.
        dies: Who goes as it is to activate.
        nodes: The queues of the one that leaves.
    """

    id = "leaver"
    siblings: frozenset[str] = frozenset()
    diallers: tuple[str, ...] = ()

    def __init__(self, *containers: str) -> None:
        self.taken = dict.fromkeys(containers, 0)
        self.gone: set[str] = set()
        self.forgets: set[str] = set()
        self.dies = containers[0]
        self.nodes = NodeTable()
        costs = {each: at for at, each in enumerate(containers)}
        self.mesh = SimpleNamespace(routes=SimpleNamespace(tree=SimpleNamespace(costs=costs)))

    def data_connections(self) -> tuple[()]:
        return ()

    def way_to(self, container: str) -> str | None:
        return None if container in self.gone else container


class Way:
    """A way to one of them."""

    takes_past = True

    def __init__(self, mesh: Mesh, _vhost: object, _node: QueueNode, target: str | None) -> None:
        if target is None or mesh.way_to(target) is None:
            raise MoveError(f"container {target} cannot be reached")
        self._mesh = mesh
        self._target = target

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    async def opened(self, _deadline_s: float) -> None:
        """It is."""

    async def prepare(self, _batch: Mapping[int, object], _deadline_s: float) -> dict[int, str]:
        return {}

    async def activate(self, numbers: Mapping[int, object], _deadline_s: float) -> None:
        mesh = self._mesh
        if self._target in mesh.forgets:
            raise ForgottenError("it has been started anew")
        if self._target == mesh.dies:
            mesh.dies = ""
            mesh.gone.add(self._target)
            raise MoveError("it is gone")
        mesh.taken[self._target] += len(numbers)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"STALL_S": 0.1, "RETRY_S": 0.01, "BATCH": BATCH, "MoveWay": Way}.items():
        monkeypatch.setattr(moving, name, value)


def leave(
    mesh: Mesh,
    *nodes: QueueNode,
    limit_s: float = 5.0,
    back_after_s: float = 60.0,
    after: tuple[float, Callable[[], None]] | None = None,
) -> tuple[int, int, str | None]:
    """Have queues' items moved; return how many are left, and what the mover says.

    Args:
        mesh: Where to.
        nodes: The queues.
        limit_s: How long that may take.
        back_after_s: When those that are gone come back.
        after: What happens meanwhile, and when.
    """

    async def run() -> tuple[int, int, str | None]:
        loop = asyncio.get_running_loop()
        loop.call_later(back_after_s, mesh.gone.clear)
        if after is not None:
            loop.call_later(*after)
        mover = Mover(mesh)  # type: ignore[arg-type]  # as much as it needs
        vhost = SimpleNamespace(nodes=mesh.nodes)
        for node in nodes:
            mesh.nodes[node.address] = node
        await mover.move_all(vhost, time.monotonic() + limit_s)  # type: ignore[arg-type]  # too
        return sum(map(items_of, nodes)), mover.moved, mover.problem

    return asyncio.run(run())


@contextmanager
def queue(address: str = "queue/a", body: object = "x", **options: object) -> Iterator[QueueNode]:
    """A queue with items."""
    with Loopback(QueueNode, address, options) as loop:
        loop.send(ITEMS, body)
        assert isinstance(loop.node, QueueNode)
        yield loop.node


def test_another_one_takes_what_the_next_one_cannot_take_any_more() -> None:
    mesh = Mesh("near", "far")
    with queue(in_doubt_timeout_s=0.3) as node:
        assert leave(mesh, node) == (0, ITEMS, None)
    assert mesh.taken == {"near": 0, "far": ITEMS}


def test_what_may_have_arrived_is_not_sent_twice_where_it_is_to_be_parked() -> None:
    mesh = Mesh("near", "far")
    with queue(in_doubt="park", in_doubt_timeout_s=0.1) as node:
        left, moved, problem = leave(mesh, node, limit_s=1.0)
    assert (left, moved) == (BATCH, ITEMS - BATCH)
    assert problem is not None
    assert f"{BATCH} items of 'queue/a' could not be moved" in problem
    assert mesh.taken == {"near": 0, "far": ITEMS - BATCH}


@pytest.mark.parametrize("back_after_s", [0.05, 0.5])
def test_one_that_comes_back_has_what_was_given_up_to_it(back_after_s: float) -> None:
    mesh = Mesh("near", "far")
    with queue() as node:
        assert leave(mesh, node, back_after_s=back_after_s) == (0, ITEMS, None)
    assert mesh.taken["near"] >= BATCH
    assert sum(mesh.taken.values()) == ITEMS


def test_what_one_has_forgotten_another_one_gets() -> None:
    mesh = Mesh("near", "far")
    mesh.dies = ""
    mesh.forgets.add("near")
    with queue() as node:
        assert leave(mesh, node) == (0, ITEMS, None)
    assert mesh.taken == {"near": 0, "far": ITEMS}


@pytest.mark.parametrize("in_doubt", ["redeliver", "park"])
@pytest.mark.parametrize("after_s", [0.05, 0.3])
def test_what_was_given_up_of_a_deleted_queue_is_nobodys(after_s: float, in_doubt: str) -> None:
    """It is deleted while one that is gone is waited for: at first, and with others going on."""
    mesh = Mesh("near")

    def delete() -> None:
        del mesh.nodes["queue/a"]
        mesh.gone.clear()

    with queue(in_doubt=in_doubt) as node, queue("queue/b") as other:
        left, moved, problem = leave(mesh, node, other, after=(after_s, delete))
        assert items_of(other) == 0
    assert (left, moved, problem) == (ITEMS, ITEMS, None)
    assert mesh.taken == {"near": ITEMS}


def test_what_one_queue_has_taken_in_is_not_made_up_for_by_one_that_is_deleted() -> None:
    mesh = Mesh("near")
    mesh.dies = ""
    with queue() as first, queue("queue/b") as second:
        vhost: Any = SimpleNamespace(nodes=NodeTable())
        vhost.nodes["queue/a"], vhost.nodes["queue/b"] = first, second
        mover = Mover(mesh)  # type: ignore[arg-type]  # as much as it needs
        asyncio.run(mover.move_all(vhost, time.monotonic() + 5.0))
        assert not mover.has_more_since(vhost)
        del vhost.nodes["queue/a"]
        assert not mover.has_more_since(vhost)
        for _ in range(ITEMS):
            assert second.store.put(Message("more").encode())
        assert mover.has_more_since(vhost)


def later(delay_ms: int) -> Message:
    return Message("x", annotations={Symbol("x-opt-delivery-delay"): UInt(delay_ms)})


def test_what_is_delayed_moves_to_who_keeps_its_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(self: Way, _deadline_s: float) -> None:
        self.takes_past = self._target == "far"

    monkeypatch.setattr(Way, "opened", opened)
    mesh = Mesh("near", "far")
    mesh.dies = ""
    with queue(body=later(60_000)) as node:
        assert leave(mesh, node) == (0, ITEMS, None)
    assert mesh.taken == {"near": 0, "far": ITEMS}


def test_who_keeps_no_delays_gets_what_was_delayed_once_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Way, "takes_past", False)
    mesh = Mesh("near")
    mesh.dies = ""
    with queue(body=later(60_000)) as node:
        has_more_come = Mover._has_more_come

        async def due(*arguments: Any) -> bool:
            node.tick(time.monotonic() + 61)
            return await has_more_come(*arguments)

        monkeypatch.setattr(Mover, "_has_more_come", due)
        assert leave(mesh, node) == (0, ITEMS, None)


def test_a_queue_whose_items_are_not_ready_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Way, "takes_past", False)
    mesh = Mesh("near")
    mesh.dies = ""
    with queue(body=later(60_000)) as first, queue("queue/b") as second:
        assert first.store.counts()["delayed"] == ITEMS
        left, moved, problem = leave(mesh, first, second, limit_s=0.5)
    assert (left, moved) == (ITEMS, ITEMS)
    assert problem == (
        f"{ITEMS} items of 'queue/a' could not be moved: "
        "container near takes nothing that is delayed"
    )


def test_a_queue_that_fills_as_fast_as_it_is_moved_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mesh = Mesh("near")
    mesh.dies = ""
    with queue() as first, queue("queue/b") as second:
        activate = Way.activate

        async def refill(way: Way, numbers: Mapping[int, object], deadline_s: float) -> None:
            await activate(way, numbers, deadline_s)
            await asyncio.sleep(0)
            if second.store.depth:
                for _ in numbers:
                    assert first.store.put(Message("more").encode())

        monkeypatch.setattr(Way, "activate", refill)
        left, moved, problem = leave(mesh, first, second)
    assert (left, problem) == (0, None)
    assert moved >= 2 * ITEMS


def test_a_queue_at_which_something_fails_keeps_no_other_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = Mesh("near")
    mesh.dies = ""
    with queue() as first, queue("queue/b") as second:
        move_queue = Mover._move_queue

        async def fail(mover: Mover, vhost: Any, node: QueueNode, deadline_s: float) -> bool:
            if node is first:
                raise OSError("it broke")
            return await move_queue(mover, vhost, node, deadline_s)

        monkeypatch.setattr(Mover, "_move_queue", fail)
        left, moved, problem = leave(mesh, first, second)
    assert (left, moved) == (ITEMS, ITEMS)
    assert problem is not None
    assert problem.endswith("'queue/a' could not be moved: moving them failed: OSError('it broke')")
    assert [record.message for record in caplog.records if record.exc_info] == [
        "cannot move the items of 'queue/a'"
    ]
