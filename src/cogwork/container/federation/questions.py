"""What a container asks the owner of a queue: what items it has, to purge it, to give it up.

Theory of operation. A question is an attach on the tunnel to the owner, with the question among its
properties, and the answer is among those of the attach that answers it; then the link is detached.
So a question needs no address of its own, and comes behind what was sent to the owner before. What
is more than an attach can hold is asked for piece by piece: each answer says how much there is, and
a sum over all of it, by which pieces of different moments are told apart.
"""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from cogwork.amqp.errors import CogworkError, Condition
from cogwork.amqp.performatives import Role
from cogwork.amqp.states import LinkState
from cogwork.amqp.terminus import Source, Target
from cogwork.container.mesh.names import ANSWER, HOMED, OWNED, QUESTION, VHOST
from cogwork.dataplane.encoding.codec import decode, encode
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.plugin.capabilities import Removable, Replicated, replica_of
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.performatives import Attach
    from cogwork.amqp.types import Symbol
    from cogwork.container.federation.remote_consumer import Standing, Standings
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.plugin.node import Node

    Answer = Mapping[str, Any]
    """Figures by name; `octets` where there is more to tell."""

__all__ = (
    "COUNTS",
    "GIVE_UP",
    "MOVE",
    "PEEK",
    "PURGE",
    "RESERVE",
    "OwnerAway",
    "Questions",
    "answer",
    "peek_at_owner",
    "standing_of",
)

COUNTS: Final = "counts"
PURGE: Final = "purge"
GIVE_UP: Final = "give-up"
PEEK: Final = "peek"
MOVE: Final = "move"

RESERVE: Final = "reserve"
"""What a question for counts has besides where a consumer is about to come: the number by which its
attach names it, so that of several that want a queue alone one is told that it may."""

ANSWER_TIMEOUT_S = 10.0
"""So long an owner that can be reached has to answer."""

ELECTION_TIMEOUT_S = 5.0
"""So long it is waited for a replicated queue to have an owner."""

HOME_TIMEOUT_S = 3.0
"""So long it is waited for a home: for a lost link to be back, or for the home to know a queue that
has just been declared."""

PAUSE_S = 0.05

PIECE_BYTES = 16 * 1024
"""Octets of one answer: it is a frame, and frames between containers have more."""

PEEK_STEP = 10
PEEK_BYTES_MAX = 1024 * 1024
"""Items of one page, as far as they have no more octets; one is shown in any case."""

PEEK_ATTEMPTS = 5
"""How often a page is asked for again that changed while its pieces came."""


_moves: set[asyncio.Task[None]] = set()
"""Those under way: the loop itself holds its tasks weakly."""


class OwnerAway(CogworkError):
    """The owner of a queue cannot be reached, or does not answer.

    Attributes:
        owner: Its id; empty where nobody owns the queue.
    """

    def __init__(self, address: str, owner: str) -> None:
        self.owner = owner
        who = f"container {owner}, which owns it, does" if owner else "nobody owns it: replicas do"
        super().__init__(f"queue {address!r:.200} cannot be asked: {who} not answer")


class Place(Protocol):
    """A virtual host, as far as questions need it.

    Attributes:
        name: Its name.
        standings: Its queues as AMQP 0-9-1 knows their consumers; None while nobody does.
    """

    name: str
    standings: Standings | None

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes."""

    def remove_node(self, key: str) -> None:
        """Give up a node."""

    async def move_items(self, node: Replicated, question: Mapping[str, object]) -> Answer:
        """Move items of a queue that this container owns; see `transfers.moved_here`."""


class _NotKnown(Exception):
    """The owner does not know the queue, or not yet."""


@dataclass(slots=True, eq=False)
class _Asked:
    """A question under way: the context of its link."""

    told: Future[Answer]

    def attached(self, link: Link) -> None:
        """Take the answer; a refusal has none, and is followed by a detach."""
        properties = {} if link.remote is None else link.remote.properties or {}
        said = properties.get(ANSWER)
        if isinstance(said, dict) and not self.told.done():
            self.told.set_result({str(key): _value(value) for key, value in said.items()})
            link.detach()

    def stopping(self, _link: Link) -> None:
        """Take it that there will be no answer, where there is none yet."""
        if not self.told.done():
            self.told.set_exception(_NotKnown)

    def detached(self, _link: Link, _error: AmqpError | None) -> None:
        """It is over: whoever asked knows that already."""


class Questions:
    """What one virtual host asks the owners of its queues."""

    def __init__(
        self,
        own: str,
        vhost: Place,
        *,
        session_to: Callable[[str], SessionEndpoint | None],
        is_reachable: Callable[[str], bool],
    ) -> None:
        """Initialize it; it asks nothing yet.

        Args:
            own: This container's id.
            vhost: Has the queues.
            session_to: Returns the tunnel to a container, if there is a way.
            is_reachable: Returns whether there is a way to a container.
        """
        self._own = own
        self._vhost = vhost
        self._session_to = session_to
        self._is_reachable = is_reachable
        self._count = 0

    async def ask(self, address: str, question: str, **details: object) -> Answer:
        """Ask the owner of a queue, which is another container, or this one since a moment ago.

        Args:
            address: The queue.
            question: Which.
            details: What belongs to it.

        Returns:
            The answer.

        Raises:
            OwnerAway: It cannot be reached, or does not answer.
        """
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        asked: dict[str, object] = {"ask": question, **details}
        while True:
            owner, is_home = self._owner_of(address)
            node = self._vhost.nodes.get(address)
            if owner == self._own and isinstance(node, Replicated):
                if question == MOVE:
                    return await self._vhost.move_items(node, asked)
                return _answer(self._vhost, node, asked)
            if owner and self._is_reachable(owner):
                try:
                    return await self._ask(owner, address, asked)
                except _NotKnown:  # its turn to apply the declaration has not come, or it is gone
                    pass
            if loop.time() - begun_s > (HOME_TIMEOUT_S if is_home else ELECTION_TIMEOUT_S):
                raise OwnerAway(address, owner)
            await asyncio.sleep(PAUSE_S)

    def _owner_of(self, address: str) -> tuple[str, bool]:
        """Return who owns a queue, empty for nobody, and whether it always will."""
        replica = replica_of(self._vhost.nodes.get(address))
        if replica is None:
            raise OwnerAway(address, "")
        return replica.owner or "", replica.home is not None

    async def _ask(self, container: str, address: str, question: Mapping[str, object]) -> Answer:
        session = self._session_to(container)
        if session is None:
            raise _NotKnown
        self._count += 1
        name = f"{self._own}/{self._vhost.name}/question/{self._count}"
        link = session.open_link(name, Role.RECEIVER)
        asked = _Asked(asyncio.get_running_loop().create_future())
        link.context = asked
        link.carry(IncomingLink(session.end, link.handle))
        properties: dict[Symbol, object] = {VHOST: self._vhost.name, QUESTION: question}
        replica = replica_of(self._vhost.nodes.get(address))
        if replica is not None:
            properties[OWNED if replica.home is None else HOMED] = True
        link.attach(source=Source(address=address), target=Target(), properties=properties)
        session.connection.flush()
        timer = asyncio.get_running_loop().call_later(ANSWER_TIMEOUT_S, _give_up, asked, link)
        try:
            return await asked.told
        finally:
            timer.cancel()


def _give_up(asked: _Asked, link: Link) -> None:
    """End a question that has not been answered in time."""
    if not asked.told.done():
        asked.told.set_exception(_NotKnown)
        link.detach()


def _value(value: object) -> int | bytes:
    return value if isinstance(value, bytes) else int(str(value))


async def peek_at_owner(
    questions: Questions, address: str, count: int, offset: int
) -> list[dict[str, object]]:
    """Return some items of a queue that another container owns; none where there are no more.

    Args:
        questions: Of the queue's virtual host.
        address: The queue.
        count: How many at most; they may be fewer.
        offset: How many to leave out first.

    Raises:
        OwnerAway: It cannot be reached, or its items change faster than they can be shown.
    """
    for _ in range(PEEK_ATTEMPTS):
        messages = bytearray()
        said = await questions.ask(address, PEEK, index=offset, count=count, start=0)
        messages += said["octets"]
        check = said["check"]
        while len(messages) < said["size"] and said["check"] == check:
            asked = {"index": offset, "count": count, "start": len(messages)}
            said = await questions.ask(address, PEEK, **asked)
            messages += said["octets"]
        if said["check"] == check:
            return _items_of(said, bytes(messages))
    raise OwnerAway(address, "")


def _items_of(said: Answer, messages: bytes) -> list[dict[str, object]]:
    """Put the messages of a page to their facts."""
    found: Any = decode(said["facts"])[0]
    at = 0
    for facts in found:
        size = facts.pop("size")
        facts["message"] = messages[at : at + size]
        at += size
    return list(found)


# -- the owner's side


def standing_of(vhost: Place, address: str) -> Standing | None:
    """Return a queue as AMQP 0-9-1 knows its consumers."""
    return None if vhost.standings is None else vhost.standings.standing_at(address)


def answer(vhost: Place, node: Node, link: Link, attach: Attach) -> None:
    """Do what another container asks of a queue here, and say what came of it once it is durable.

    Args:
        vhost: Has the queue.
        node: The queue, which this container owns.
        link: The question's.
        attach: How it was asked.

    Raises:
        Refused: There is no such question.
    """
    question = (attach.properties or {}).get(QUESTION)
    if not isinstance(question, dict) or not isinstance(node, Replicated):
        raise Refused("a question that is none", Condition.INVALID_FIELD)
    if question.get("ask") == MOVE:
        task = asyncio.get_running_loop().create_task(_move(vhost, node, link, question))
        _moves.add(task)
        task.add_done_callback(_moves.discard)
        return
    link.put_off(partial(_tell, link, _answer(vhost, node, question)))
    node.when_durable(lambda is_durable: _end(link, is_durable=is_durable))


async def _move(vhost: Place, node: Replicated, link: Link, question: Mapping[str, object]) -> None:
    """Answer once the items of a question have been moved; its link may have gone by then."""
    said = await vhost.move_items(node, question)
    if link.state is LinkState.ATTACH_RCVD:
        link.put_off(partial(_tell, link, said))
        node.when_durable(lambda is_durable: _end(link, is_durable=is_durable))


def _end(link: Link, *, is_durable: bool) -> None:
    """Answer, or leave it open what came of it where that may be lost again."""
    if is_durable:
        link.answer()
        link.session.connection.flush()
    else:
        link.detach()


def _tell(link: Link, said: Answer) -> None:
    link.attach(source=Source(), target=Target(), properties={ANSWER: dict(said)})


def _page(node: Replicated, question: Mapping[str, object]) -> Answer:
    """Return a piece of a page of items, as `peek_at_owner` puts it together."""
    index, count, start = (int(str(question.get(key, 0))) for key in ("index", "count", "start"))
    facts: list[dict[str, object]] = []
    messages: list[bytes] = []
    for message, known in node.store.peek(min(count, PEEK_STEP), index):
        if messages and sum(map(len, messages)) + len(message) > PEEK_BYTES_MAX:
            break
        facts.append({**known, "size": len(message)})
        messages.append(message)
    octets = b"".join(messages)
    numbers = repr([each["item"] for each in facts]).encode()
    return {
        "octets": octets[start : start + PIECE_BYTES],
        "size": len(octets),
        "check": zlib.crc32(octets, zlib.crc32(numbers)),
        "facts": encode(facts),  # ages are others each time
    }


def _answer(vhost: Place, node: Replicated, question: Mapping[str, object]) -> Answer:
    if question.get("ask") == PEEK:
        return _page(node, question)
    standing = standing_of(vhost, node.address)
    kind, counts = question.get("ask"), node.store.counts()
    said: dict[str, int] = {
        "ready": counts["ready"],
        "consumers": counts["consumers"],
        "is-done": 1,
    }
    if standing is not None:  # it knows those that wait for their turn, too
        standing.use()
        said["consumers"] = standing.consumer_count
        said["is-taken"] = int(standing.is_taken)
        ticket = question.get(RESERVE)
        if isinstance(ticket, int):
            is_exclusive = bool(question.get("exclusive"))
            said["is-done"] = int(standing.reserve(ticket, is_exclusive=is_exclusive))
    if kind == PURGE:
        said["purged"] = node.store.purge()
    elif kind == GIVE_UP and isinstance(node, Removable):
        is_used = question.get("if-unused") and said["consumers"]
        if is_used or (question.get("if-empty") and counts["ready"]):
            said["is-done"] = 0
        else:
            node.end_links()
            node.delete()
            vhost.remove_node(node.address)
    elif kind != COUNTS:
        raise Refused(f"no question {kind!r:.80}", Condition.NOT_IMPLEMENTED)
    return said
