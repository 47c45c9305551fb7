"""When replicated queues are visited, how their streams are found, who is told to hold them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from msgspec import structs

from cogwork.cluster.declarations import Declarations, Declare
from cogwork.container.cluster.cluster import Cluster
from cogwork.container.cluster.queue_replicas import QueueReplicas
from cogwork.container.cluster.replicated_queue import ReplicatedQueue
from cogwork.container.cluster.rounds import ROUND_TICKS
from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.queue_options import QueueOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.container.vhost.virtual_host import VirtualHost


def replicas(vhosts: Mapping[str, VirtualHost] | None = None) -> QueueReplicas:
    return QueueReplicas(
        "a",
        None,  # type: ignore[arg-type]  # nothing is held
        None,  # type: ignore[arg-type]  # nothing is written
        vhosts or {},
        has_cluster=True,
    )


class Service:
    """Replicas of streams, which tell nothing by themselves.

    Attributes:
        leading: The streams whose replicas here lead.
    """

    def __init__(self) -> None:
        self.streams: dict[str, object] = {}
        self.leading: set[str] = set()
        self.on_replica_changed: Callable[[str], object] = lambda _stream: None

    def leads(self, stream: str) -> bool:
        return stream in self.leading


class AtRest:
    """Queues that have been visited once, and whose streams are not opened yet.

    Attributes:
        queues: By address.
        visited: The addresses of those that are visited from now on.
        claimed: Those that are to be owned here.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
        self.visited: list[str] = []
        self.claimed: list[str] = []

        def attend(queue: ReplicatedQueue, _now_s: float, *, has_replica: bool) -> None:
            del has_replica
            self.visited.append(queue.address)

        monkeypatch.setattr(ReplicatedQueue, "attend", attend)
        monkeypatch.setattr(
            ReplicatedQueue, "claim", lambda queue: self.claimed.append(queue.address)
        )
        self.service = Service()
        self.replicas = replicas()
        unasked = cast("Any", None)
        self.queues = {
            each: self.replicas.open("", each, {}, unasked, unasked) for each in addresses
        }
        cluster = SimpleNamespace(when_current=asyncio.Event().wait)
        self.replicas.start(cast("Any", cluster), cast("Any", self.service), unasked)
        self.tick()
        assert sorted(self.visited) == sorted(addresses)
        self.visited.clear()

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.replicas._tick()


def test_queues_of_which_there_is_no_news_are_visited_once_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        made = AtRest(monkeypatch, "work/a", "work/b")
        made.tick(5 * ROUND_TICKS)
        assert sorted(made.visited) == ["work/a"] * 5 + ["work/b"] * 5
        made.replicas.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    "news",
    [
        pytest.param(lambda made: made.service.on_replica_changed("queue work/b"), id="replica"),
        pytest.param(lambda made: made.queues["work/b"].wake(), id="owner elsewhere"),
        pytest.param(lambda made: made.replicas.changed(made.queues["work/b"]), id="owner here"),
        pytest.param(lambda made: made.replicas.unbar(), id="disk"),
    ],
)
def test_news_of_a_queue_has_it_visited_at_the_next_tick(
    news: Callable[[AtRest], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        made = AtRest(monkeypatch, "work/a", "work/b")
        made.tick()
        made.visited.clear()  # it is nobody's turn for a while
        news(made)
        assert made.visited == []
        made.tick(3)
        assert made.visited.count("work/b") == 1
        made.replicas.close()

    asyncio.run(story())


def test_what_nobody_told_of_is_found_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        made = AtRest(monkeypatch, "work/a", "work/b")
        made.service.leading.add("queue work/b")
        made.tick(ROUND_TICKS)
        assert set(made.claimed) == {"work/b"}
        made.replicas.close()

    asyncio.run(story())


def test_a_queue_that_is_to_be_owned_here_is_claimed_at_each_tick_until_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        made = AtRest(monkeypatch, "work/a")
        made.service.leading.add("queue work/a")
        made.service.on_replica_changed("queue work/a")
        made.tick(3)
        assert made.claimed == ["work/a"] * 3
        made.replicas.is_barred = True
        made.tick(3)
        assert made.visited == ["work/a"] * 4
        assert made.claimed == ["work/a"] * 3, "nothing is owned where the disk takes nothing"
        made.replicas.unbar()
        made.tick()
        assert made.claimed == ["work/a"] * 4
        made.queues["work/a"].epoch = 1
        made.tick(3)
        assert made.visited == ["work/a"] * 6
        made.queues["work/a"].epoch = None
        made.replicas.close()

    asyncio.run(story())


def test_an_owner_that_goes_by_the_time_is_visited_at_each_tick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        made = AtRest(monkeypatch, "work/a")
        queue = made.queues["work/a"]
        queue.epoch = 1
        queue._late[asyncio.get_running_loop().create_future()] = 0.0
        queue.wake()
        made.tick(3)
        assert made.visited == ["work/a"] * 3
        queue._late.clear()
        made.tick(3)
        assert made.visited == ["work/a"] * 4
        queue.epoch = None
        made.replicas.close()

    asyncio.run(story())


def test_a_queue_that_is_closed_is_visited_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        made = AtRest(monkeypatch, "work/a", "work/b")
        queue = made.queues["work/b"]
        queue.wake()
        queue.close()
        queue.wake()
        made.service.on_replica_changed("queue work/b")
        made.tick(2 * ROUND_TICKS)
        assert set(made.visited) == {"work/a"}
        made.replicas.close()

    asyncio.run(story())


def test_a_queue_that_was_declared_before_an_option_was_known_is_found() -> None:
    async def story() -> str:
        options = {**structs.asdict(QueueOptions(durability="replicated")), "maximum_length": 7}
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
        options = structs.asdict(QueueOptions(durability="replicated"))
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
