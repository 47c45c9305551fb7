"""A management node in a world without a container: requests go in, replies come out."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from cogwork.amqp.errors import Condition
from cogwork.amqp.message import Properties, Sections, Value, decode_sections, encode_sections
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.core import Core
from cogwork.nodes.management import ManagementNode
from cogwork.plugin.effects import Effect, Send
from cogwork.plugin.management import ContainerView, ManagementError, OnOutcome, Row
from cogwork.plugin.node import NodeContext, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence

    from cogwork.dataplane.terminus import Terminus
    from cogwork.plugin.mesh import LinkRow


Plain: TypeAlias = Any
ACCEPTED, REJECTED, RELEASED = 0x24, 0x25, 0x26


class Asker:
    """A requester that may do what it is told it may."""

    def __init__(self, *rights: tuple[str, str], identity: str | None = "ann") -> None:
        self.identity = identity
        self.rights = set(rights)
        self.takes_replies = True
        self.denied: set[tuple[str, str]] = set()

    def may(self, right: str, address: str) -> bool:
        return (right, address) in self.rights

    def is_denied(self, right: str, address: str) -> bool:
        return (right, address) in self.denied

    def takes_reply(self, address: str) -> bool:
        return self.takes_replies


class Table:
    """A collection of so many rows."""

    attributes = ("name", "size")

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    def rows(
        self, index: int, count: int, sees: Callable[[str], bool] | None = None
    ) -> Iterator[Row]:
        names = [name for name in self.names if sees is None or sees(name)]
        return ({"name": name, "size": len(name)} for name in names[index : index + count])

    def find(self, name: str) -> Row | None:
        return {"name": name, "size": len(name)} if name in self.names else None


class ItemTable:
    """A queue that is a list."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = list(messages)
        self.aside: dict[int, bytes] = {}
        self.count = 0

    def peek(self, count: int, offset: int = 0) -> Sequence[tuple[bytes, Mapping[str, object]]]:
        return [(message, {"state": "ready"}) for message in self.messages][offset:][:count]

    def purge(self, count: int) -> int:
        return len(self.take_ready(count))

    def take_ready(self, count: int) -> Sequence[tuple[int, bytes]]:
        taken, self.messages = self.messages[:count], self.messages[count:]
        numbered = list(enumerate(taken, self.count))
        self.count += len(taken)
        self.aside.update(numbered)
        return numbered

    def moved(self, number: int) -> None:
        del self.aside[number]

    def put_back(self, number: int) -> None:
        self.messages.append(self.aside.pop(number))

    def routed_back(self, message: bytes) -> tuple[str | None, bytes]:
        """A dead letter is written `origin<body` here."""
        origin, mark, body = message.decode().partition("<")
        return (origin, body.encode()) if mark else (None, message)


class Neighbours:
    """A mesh that is a table of URLs with costs."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.costs: dict[str, int] = {}

    def links(self) -> Sequence[LinkRow]:
        return ()

    def add_link(self, url: str, cost: int) -> None:
        if ":" not in url:
            raise Refused(f"found {url}, expected HOST:PORT", Condition.INVALID_FIELD)
        if url in self._table.names:
            raise Refused(f"{url} is linked already")
        self.costs[url] = cost
        self._table.names.append(url)

    def remove_link(self, url: str) -> None:
        del self.costs[url]

    def snapshot(self) -> dict[str, object]:
        return {"id": "box"}


class FakeContainer:
    """What the node sees of a container."""

    knows_declarations = True

    def __init__(self, *, is_default: bool = True) -> None:
        self.asker: Asker | None = Asker(("manage", "$management"))
        self.noted: list[tuple[str | None, ...]] = []
        self.later: list[Callable[[], None]] = []
        self.queues: dict[str, ItemTable] = {}
        self.accepts = True
        self.done: list[tuple[object, ...]] = []
        self.pending: list[OnOutcome] = []
        self.answers_at_once = True
        self.trouble: Exception | None = None
        self.collections = {
            "container": Table(["box"]),
            "connection": Table(["1", "2"]),
            "session": Table([]),
            "link": Table([str(number) for number in range(1000)]),
            "address": Table(["queue/a", "queue/b"]),
            "queue": Table(["queue/a", "queue/b"]),
            "node": Table([]),
        }
        links = Table(["here:1"])
        if is_default:
            self.collections |= {"org.cogwork.link": links, "org.cogwork.mesh": Table(["box"])}
        self.mesh = Neighbours(links)

    def requester(self, source: Terminus | None) -> Asker | None:
        return self.asker

    def note_request(
        self, requester: object, what: Mapping[str, str], *, refusal: str | None
    ) -> None:
        self.noted.append((*what.values(), refusal))

    def soon(self, step: Callable[[], None]) -> None:
        self.later.append(step)

    def disconnect_user(self, name: str, reason: str) -> int:
        """Take note of it."""
        self.done.append(("disconnect", name, reason))
        return 2

    def close_connection(self, name: str, reason: str) -> bool:
        self.done.append(("close", name, reason))
        return name in self.collections["connection"].names

    def detach_link(self, name: str, reason: str) -> bool:
        self.done.append(("detach", name, reason))
        return name in self.collections["link"].names

    def bind(self, requester: object, link: str, pattern: str) -> bool:
        self.done.append(("bind", link, pattern))
        return True

    def unbind(self, requester: object, link: str, pattern: str) -> bool:
        raise ManagementError(404, f"no link {link}")

    def queue(self, address: str) -> ItemTable | None:
        return self.queues.get(address)

    def declare_queue(self, address: str, options: Mapping[str, object], _for: object) -> bool:
        self.done.append(("declare", address, dict(options)))
        return address not in self.collections["queue"].names

    def delete_queue(self, address: str) -> bool:
        return self.queues.pop(address, None) is not None

    def purge_elsewhere(self, _address: str) -> None:
        return None

    def peek_elsewhere(self, _address: str, _count: int, _offset: int) -> None:
        return None

    def has_queue(self, address: str) -> bool:
        return address in self.queues

    def move_elsewhere(self, *_asked: object) -> None:
        return None

    async def withdraw_queue(self, _address: str) -> bool:
        if self.trouble is not None:
            raise self.trouble
        return False

    async def demand_rooms(self, options: Mapping[str, object]) -> None:
        if "nobody" in cast("Sequence[str]", options.get("replicas", ())):
            raise ValueError("container 'nobody' can hold no replica")

    async def relocate_queue(
        self, address: str, voters: Sequence[str], learners: Sequence[str]
    ) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.done.append(("relocate", address, [*voters], [*learners]))

    def begin(self, work: Coroutine[object, object, object]) -> Future[object]:
        done: Future[object] = Future()
        try:
            done.set_result(asyncio.run(work))
        except Exception as error:
            done.set_exception(error)
        return done

    def send(self, address: str, message: bytes, on_outcome: OnOutcome) -> bool:
        if address not in self.queues:
            return False
        if not self.answers_at_once:
            self.pending.append(on_outcome)
            return True
        if self.accepts:
            self.queues[address].messages.append(message)
        on_outcome(accepted=self.accepts)
        return True


class World:
    """A management node, and what stands around it."""

    def __init__(self, container: FakeContainer | None = None) -> None:
        self.core = Core()
        self.container = container or FakeContainer()
        self.replies: dict[object, Sections] = {}
        self.order: list[object] = []
        self.outcomes: dict[int, tuple[int, bytes | None]] = {}
        self._port = Port(self.core, self)
        self.node = ManagementNode(
            NodeContext(
                core=self.core,
                address="$management",
                is_prefix=False,
                options={},
                container_id="box",
                emit=self._emit,
                container=cast("ContainerView", self.container),
            )
        )

    def _emit(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            assert isinstance(effect, Send)
            reply = decode_sections(effect.message)
            assert reply.properties is not None
            self.replies[reply.properties.correlation_id] = reply
            self.order.append(reply.properties.correlation_id)

    def on_batch(self, port: Port) -> None:
        outcomes, port.outcomes = port.outcomes, []
        self.outcomes |= {token: (code, state) for token, code, state, _ in outcomes}

    def send_raw(self, token: int, message: bytes, *, settled: bool = False) -> None:
        self.node.entry("$management").send(self._port, token, message, settled)

    def send(
        self, token: int, body: object = None, reply_to: str | None = "here", **asked: Plain
    ) -> None:
        """Send a request without letting it be worked on yet."""
        message = Sections(
            properties=Properties(message_id=token, reply_to=reply_to),
            application_properties=asked,
            body=Value(body),
        )
        self.send_raw(token, encode_sections(message))

    def ask(self, body: object = None, **asked: Plain) -> Sections:
        """Send one request and work until it is answered."""
        self.send(99, body, **asked)
        self.work()
        return self.replies[99]

    def work(self, turns: int = 1000) -> None:
        """Let the node have turns for as long as it wants them."""
        self.core.flush()
        while self.container.later and turns:
            turns -= 1
            steps, self.container.later = self.container.later, []
            for step in steps:
                step()
            self.core.flush()


def status(reply: Sections) -> int:
    assert reply.application_properties is not None
    return int(str(reply.application_properties["statusCode"]))


def text(reply: Sections) -> str:
    assert reply.application_properties is not None
    return str(reply.application_properties["statusDescription"])


def value(reply: Sections) -> Plain:
    assert isinstance(reply.body, Value), text(reply)
    return reply.body.value
