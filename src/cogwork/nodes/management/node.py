"""The node at `$management`: takes requests, has them carried out, answers.

Theory of operation. Requests come in batches and wait in line. In each turn a few are carried out,
no more than cost about a millisecond; the next turn comes after other traffic has had its own. An
operation that takes long is a generator: each step of it is one piece of work in that line, so
requests that came later are answered meanwhile, and replies may come out of order. A request's
delivery is settled when it has been answered: a link's credit bounds what waits here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError
from cogwork.amqp.message import Properties, Sections, Value
from cogwork.amqp.outcomes import Rejected
from cogwork.dataplane.addresses.entry import CLOSEST_CODE, AddressEntry
from cogwork.dataplane.addresses.port import Port
from cogwork.dataplane.encoding.codec import encode
from cogwork.dataplane.message.messages import Message
from cogwork.nodes.management.operations import Operations
from cogwork.nodes.management.request import Reply, Request
from cogwork.plugin.effects import ACCEPTED, Send
from cogwork.plugin.management import BAD_REQUEST, FORBIDDEN, LINK, UNAUTHORIZED, ManagementError
from cogwork.plugin.node import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.terminus import Terminus
    from cogwork.nodes.management.operations import Work
    from cogwork.plugin.effects import Effect
    from cogwork.plugin.management import ContainerView, Requester
    from cogwork.plugin.node import NodeContext, Subscription

__all__ = ("ManagementNode",)

ADDRESS = "$management"

TURN_COST_MAX = 16
"""Pieces of work in one turn; a small request is one, some 50 µs."""

WAITING_MAX = 10_000
"""Requests in line: enough for ten clients that use all their credit."""

REQUEST_SIZE_BYTES_MAX = 256 * 1024
"""A request says what is to be done; ten thousand patterns fit."""

LOOKS = frozenset(
    {"READ", "QUERY", "BOUNDS", "REPORT", "SUBSCRIBE", "UNSUBSCRIBE"}
    | {"FILES", "CONTENT", "ENTRIES"}
    | {"GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-MGMT-NODES"}
)
"""Operations that change nothing of anybody else's."""

REJECTED, RELEASED = 0x25, 0x26
"""Descriptor codes of outcomes (AMQP 1.0 §3.4.3, §3.4.4)."""


@dataclass(slots=True)
class _Task:
    """A request in line, or one that is being carried out step by step."""

    source: Terminus
    token: int
    request: Request
    requester: Requester
    work: Work | None = None


class ManagementNode:
    """Answers requests about its container. One for each virtual host."""

    serves_prefix = False

    def __init__(self, context: NodeContext) -> None:
        """Start without requests.

        Args:
            context: With the container's view.

        Raises:
            Refused: The address is not `$management` itself.
        """
        if context.address != ADDRESS or context.container is None:
            raise Refused(f"{context.address!r} is no address; {ADDRESS} is", Condition.NOT_FOUND)
        self._container: ContainerView = context.container
        self._emit = context.emit
        self._operations = Operations(context.container, context.container_id)
        self._line: deque[_Task] = deque()
        self._asleep: list[_Task] = []
        self._is_due = False
        self._port = Port(context.core, self)
        self._entry = AddressEntry(context.core, ADDRESS, CLOSEST_CODE)
        self._entry.add_outlet(self._port)
        self.requests = 0
        self.errors = 0
        context.container.on_done = self._look_again

    # -- what every node does

    def entry(self, _address: str) -> AddressEntry:
        """Return where requests go."""
        return self._entry

    def subscribe(self, subscription: Subscription) -> None:
        """Refuse: replies go where a request says."""
        raise Refused(
            f"nothing can be received from {subscription.address!r}: replies go to a request's "
            "reply-to, such as the address of a dynamic source"
        )

    def unsubscribe(self, subscription: Subscription) -> None:
        """Never happens."""

    def tick(self, _now_s: float) -> Iterable[Effect]:
        """Let what waits look again."""
        self._look_again()
        return ()

    def _look_again(self) -> None:
        if self._asleep:
            self._line.extend(self._asleep)
            self._asleep.clear()
            if not self._is_due:
                self._turn()

    def status(self) -> Mapping[str, object]:
        """Count requests."""
        return {
            "requests": self.requests,
            "errors": self.errors,
            "waiting": len(self._line) + len(self._asleep),
        }

    def close(self) -> None:
        """Forget what waits."""
        self._line.clear()
        self._asleep.clear()
        self._entry.close()
        self._port.close()

    # -- requests

    def on_batch(self, port: Port) -> None:
        """Take requests in, and carry out the first ones."""
        arrivals, port.arrivals = port.arrivals, []
        port.outcomes.clear()
        for message, token, source, _settled in arrivals:
            if source is not None:
                self._take(message, token, source)
        if not self._is_due:
            self._turn()

    def _take(self, message: bytes, token: int, source: Terminus) -> None:
        requester = self._container.requester(source)
        if requester is None:
            return
        if len(self._line) >= WAITING_MAX:
            source.settle(token, RELEASED)
            return
        if len(message) > REQUEST_SIZE_BYTES_MAX:
            text = f"a request of {len(message)} bytes; at most {REQUEST_SIZE_BYTES_MAX} are read"
            self._reject(source, token, Condition.RESOURCE_LIMIT_EXCEEDED, text)
            return
        try:
            request = Request(_sections_of(Message.decode(message)))
        except ProtocolError as error:
            self._reject(source, token, error.condition, error.description)
            return
        self._line.append(_Task(source, token, request, requester))

    def _reject(self, source: Terminus, token: int, condition: Symbol, description: str) -> None:
        """Answer with the outcome alone, where no reply can be sent."""
        self.errors += 1
        error = AmqpError(condition=condition, description=description)
        state = encode(Rejected(error=error).to_described())
        source.settle(token, REJECTED, state)

    # -- turns

    def _turn(self) -> None:
        """Do one turn's work; more turns follow for as long as anything is in line."""
        self._is_due = False
        cost = 0
        try:
            while self._line and cost < TURN_COST_MAX:
                cost += self._go_on(self._line.popleft())
        finally:
            if self._line:
                self._is_due = True
                self._container.soon(self._turn)

    def _go_on(self, task: _Task) -> int:
        """Start or continues a task; return what that cost."""
        reply_to = task.request.reply_to
        if task.work is None and not (reply_to and task.requester.takes_reply(reply_to)):
            self._refuse_reply(task)
            return 1
        reply = self._step(task)
        if reply is None:
            return TURN_COST_MAX  # what it set off is known once this turn is over
        self._answer(task, reply)
        count = reply.properties.get("count", 0)
        return 1 + (count // 25 if isinstance(count, int) else 0)

    def _step(self, task: _Task) -> Reply | None:
        """Carry out a piece of a task; return the reply once it is done."""
        try:
            if task.work is None:
                done = self._operations.start(task.request, task.requester)
                if isinstance(done, Reply):
                    return done
                task.work = done
            (self._line if next(task.work) else self._asleep).append(task)
        except StopIteration as end:
            return cast("Reply", end.value)
        except ManagementError as error:
            return Reply.of_error(error)
        except Exception:
            self._answer(task, Reply(None, 500, "an internal error; the container's log has it"))
            raise
        return None

    def _answer(self, task: _Task, reply: Reply) -> None:
        self.requests += 1
        self._note(task, reply)
        self.errors += reply.status >= 400
        assert task.request.reply_to is not None
        self._emit((Send(task.request.reply_to, task.request.answer(reply)),))
        task.source.settle(task.token, ACCEPTED)

    def _note(self, task: _Task, reply: Reply) -> None:
        """Have the security log tell of what was changed, and of who may not."""
        request = task.request
        is_refused = reply.status in (UNAUTHORIZED, FORBIDDEN)
        if is_refused or (reply.status < BAD_REQUEST and request.operation not in LOOKS):
            # The name of a link between containers is its URL, with a password perhaps.
            name = request.name.rpartition("@")[2] if request.type == LINK else request.name
            what = {"operation": request.operation, "type": request.type, "name": name}
            refusal = reply.description if is_refused else None
            self._container.note_request(task.requester, what, refusal=refusal)

    def _refuse_reply(self, task: _Task) -> None:
        reply_to = task.request.reply_to
        if not reply_to:
            text = "a request needs reply-to, such as the address of a dynamic source"
            self._reject(task.source, task.token, Condition.INVALID_FIELD, text)
            return
        text = f"no reply can be sent to {reply_to!r:.200}: no permission, or nobody takes it"
        self._reject(task.source, task.token, Condition.NOT_ALLOWED, text)


def _sections_of(message: Message) -> Sections:
    """Return what a request says; the reference would take a quarter of a second for a long one.

    Raises:
        ProtocolError: It cannot be read.
    """
    return Sections(
        properties=Properties(
            message_id=message.message_id,
            correlation_id=message.correlation_id,
            reply_to=message.reply_to,
        ),
        application_properties=message.properties,
        body=Value(message.body) if message.body_type == "value" else None,
    )
