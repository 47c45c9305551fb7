"""What can be done to queues: declare, delete, peek, purge, move, redrive, relocate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.nodes.management.permission import demand, demand_right, refuse
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.waiting import assured, deleted, finished, known, members_of
from cogwork.plugin.management import BAD_REQUEST, NOT_FOUND, ManagementError
from cogwork.plugin.transfers import Routed, Transfers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, ManagedQueue, Requester

    Steps = Generator[bool, None, Reply]

__all__ = ("Queues",)

PEEK_MAX = 1000
PEEK_STEP = 10
PEEK_SIZE_BYTES_MAX = 4 * 1024 * 1024
"""A reply with more would stay on the wire for too long."""

PURGE_STEP = 10_000
"""Items dropped in one piece of work: some 0.8 ms."""

ALL = 2**63

OUTCOMES = ("moved", "refused", "unconfirmed")


class Queues:
    """The operations on queues. Whoever may manage a queue's address may do them."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: Where the queues are.
        """
        self._container = container

    def _find(self, request: Request, requester: Requester) -> ManagedQueue:
        name = request.required_name()
        demand(requester, name)
        queue = self._container.queue(name)
        if queue is None:
            raise ManagementError(NOT_FOUND, f"there is no queue {name!r:.200}")
        return queue

    def create(self, request: Request, requester: Requester) -> Steps:
        """Declare a queue with the options of the body.

        What dies in it is sent on, so that takes the right to send to its dead-letter address.
        """
        name = request.required_name()
        demand(requester, name)
        options = request.attributes()
        if isinstance(dead_letter := options.get("dead_letter"), str):
            if dead_letter.removeprefix("/") == name.removeprefix("/"):
                raise ManagementError(
                    BAD_REQUEST,
                    f"dead_letter is {name!r:.200}, the queue's own address: name another one",
                )
            demand_right(requester, "send", dead_letter)
        return self._create(name, options, requester)

    def _create(self, name: str, options: Mapping[str, object], requester: Requester) -> Steps:
        if options.get("durability") == "replicated" and self._container.queue(name) is None:
            yield from assured(self._container, name)
            if options.get("replicas"):
                yield from finished(self._container, self._container.demand_rooms(options))
        is_new = self._container.declare_queue(name, options, requester)
        row = self._container.collections["queue"].find(name)
        return Reply(row, 201 if is_new else 200)

    def delete(self, request: Request, requester: Requester) -> Steps:
        """Give a queue up, with its items."""
        name = request.required_name()
        demand(requester, name)
        return self._delete(name)

    def _delete(self, name: str) -> Steps:
        if not self._container.delete_queue(name):
            yield from known(self._container)
            work = self._container.withdraw_queue(name)
            was_there = yield from deleted(self._container, name, work)
            if not was_there:
                raise ManagementError(NOT_FOUND, f"there is no queue {name!r:.200}")
        return Reply({}, 204)

    def peek(self, request: Request, requester: Requester) -> Reply | Steps:
        """Show items: a list of maps, each with `message`, encoded, and facts about the item."""
        name = request.required_name()
        demand(requester, name)
        offset = request.number("index", 0)
        count = min(request.number("count", 10, least=1), PEEK_MAX)
        asked = self._container.peek_elsewhere(name, count, offset)
        if asked is not None:
            return self._peek_elsewhere(asked)
        queue = self._find(request, requester)
        items: list[dict[str, object]] = []
        size_bytes = 0
        while len(items) < count and size_bytes < PEEK_SIZE_BYTES_MAX:
            shown = queue.peek(min(PEEK_STEP, count - len(items)), offset + len(items))
            items += [{**facts, "message": message} for message, facts in shown]
            size_bytes += sum(len(message) for message, _ in shown)
            if not shown:
                break
        return Reply(items, properties={"count": len(items)})

    def _peek_elsewhere(self, asked: Awaitable[list[dict[str, object]]]) -> Steps:
        items = yield from finished(self._container, asked)
        return Reply(items, properties={"count": len(items)})

    def purge(self, request: Request, requester: Requester) -> Steps:
        """Drop every item that no consumer holds, wherever the queue is."""
        name = request.required_name()
        demand(requester, name)
        asked = self._container.purge_elsewhere(name)
        if asked is not None:
            return self._purge_elsewhere(asked)
        return _purge(self._find(request, requester))

    def _purge_elsewhere(self, asked: Awaitable[int]) -> Steps:
        return Reply({"purged": (yield from finished(self._container, asked))})

    def move(self, request: Request, requester: Requester) -> Steps:
        """Move items to another queue, wherever the queue is."""
        name = request.required_name()
        demand(requester, name)
        target = request.text("target")
        if not requester.may("send", target):
            refuse(requester, "send", target)
        if not self._container.has_queue(target):
            raise ManagementError(
                NOT_FOUND,
                f"the target {target!r:.200} is no queue, or not declared yet: items move to "
                "queues, where they are kept",
            )
        if target.removeprefix("/") == request.name.removeprefix("/"):
            raise ManagementError(BAD_REQUEST, f"{target!r:.200} is both the queue and the target")
        count = request.number("count", ALL, least=1)
        asked = self._container.move_elsewhere(name, count, target, requester)
        if asked is not None:
            return self._move_elsewhere(asked, OUTCOMES)
        queue = self._find(request, requester)
        return self._transfer(request, queue, lambda message: Routed(target, message))

    def relocate(self, request: Request, requester: Requester) -> Steps:
        """Have others hold the replicas: `replicas`, and `learners` that only follow."""
        name = request.required_name()
        demand(requester, name)
        return self._relocate(name, *members_of(request))

    def _relocate(self, name: str, voters: list[str], learners: list[str]) -> Steps:
        work = self._container.relocate_queue(name, voters, learners)
        yield from finished(self._container, work)
        return Reply(self._container.collections["queue"].find(name), 202)

    def redrive(self, request: Request, requester: Requester) -> Steps:
        """Send the items of a dead-letter address back where they came from."""
        name = request.required_name()
        demand(requester, name)
        count = request.number("count", ALL, least=1)
        asked = self._container.move_elsewhere(name, count, None, requester)
        if asked is not None:
            return self._move_elsewhere(asked, (*OUTCOMES, "strangers"))
        queue = self._find(request, requester)
        strangers = 0

        def route(message: bytes) -> Routed:
            nonlocal strangers
            origin, revived = queue.routed_back(message)
            strangers += origin is None
            if origin is None or not requester.may("send", origin):
                return Routed(None, message)
            return Routed(origin, revived)

        return self._transfer(request, queue, route, lambda: {"strangers": strangers})

    def _move_elsewhere(self, asked: Awaitable[Mapping[str, int]], told: Iterable[str]) -> Steps:
        counted = yield from finished(self._container, asked)
        return Reply({each: counted[each] for each in told})

    def _transfer(
        self,
        request: Request,
        queue: ManagedQueue,
        route: Callable[[bytes], Routed],
        more: Callable[[], dict[str, int]] = dict,
    ) -> Steps:
        count = request.number("count", ALL, least=1)
        transfers = Transfers(self._container.send, queue, route)
        return _run(transfers, count, more)


def _purge(queue: ManagedQueue) -> Steps:
    purged = 0
    while count := queue.purge(PURGE_STEP):
        purged += count
        if count < PURGE_STEP:
            break
        yield True
    return Reply({"purged": purged})


def _run(transfers: Transfers, count: int, more: Callable[[], dict[str, int]]) -> Steps:
    yield from transfers.run(count)
    return Reply(
        {
            "moved": transfers.moved,
            "refused": transfers.refused,
            "unconfirmed": transfers.waiting,
            **more(),
        }
    )
