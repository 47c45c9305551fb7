"""Decides over attaches: which entry or node a link gets, with which modes and filters."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from cogwork.amqp.errors import AmqpError, Condition, FrameTooLarge
from cogwork.amqp.extensions import LINK_ID, MARKS_RECEIVED, STREAM
from cogwork.amqp.outcomes import Released
from cogwork.amqp.performatives import Attach, ReceiverSettleMode, Role, SenderSettleMode
from cogwork.amqp.terminus import COPY, Coordinator, Source, Target
from cogwork.amqp.types import Symbol
from cogwork.container.connections.clients import ClientContext, who_is
from cogwork.container.connections.shares import NOBODYS, Tally
from cogwork.container.connections.slow_peers import POLICY_CODES
from cogwork.container.gateways.inside import Inside
from cogwork.container.rabbitmq.annotations import annotator_of
from cogwork.container.security.access import Permits
from cogwork.container.vhost.filters import read_filters
from cogwork.container.vhost.kept_links import (
    KeptLink,
    KeptLinks,
    agreed_expiry,
    kept_s,
    key_of,
)
from cogwork.container.vhost.paired_links import ADDRESS as PAIRS
from cogwork.container.vhost.paired_links import PAIRED, is_paired
from cogwork.container.vhost.reply_addresses import REPLY_PREFIX, is_reply_address, new_address
from cogwork.container.vhost.source_terms import demand_kept, demand_known_mode, expiry_of, mode_of
from cogwork.container.vhost.temporary import do_nothing, goes_with_its_link
from cogwork.container.vhost.terminus_kinds import address_meant, address_named
from cogwork.container.vhost.unroutable import Refuser
from cogwork.dataplane.addresses.checked import CheckedLink
from cogwork.dataplane.default_outcome import RELEASED, outcome_of
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Bindable, Resumable, Storing, Streaming
from cogwork.plugin.node import Departure, Node, Refused, Subscription
from cogwork.router.addresses import Distribution
from cogwork.router.exchanges.addresses import RABBITMQ_QUEUES
from cogwork.router.own_addresses import missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.amqp.outcomes import DeliveryState
    from cogwork.amqp.terminus import ExpiryPolicy
    from cogwork.config.settings import Limits, Right
    from cogwork.container.connections.peer import Peer
    from cogwork.container.connections.shares import OwnLimits
    from cogwork.container.security.log import SecurityLog
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.session import SessionEndpoint
    from cogwork.router.addresses import AddressRule

__all__ = ("Attachment", "Attachments")

log = logging.getLogger("cogwork")

_OUTCOMES = (
    Symbol("amqp:accepted:list"),
    Symbol("amqp:rejected:list"),
    Symbol("amqp:released:list"),
    Symbol("amqp:modified:list"),
)

STREAM_CREDIT = 3
"""Publishers of a stream get so many times the credit of others: what they send is answered only
when it is on disks, so more is under way. Measured: three times as much keeps two cores busy."""


IN, OUT = "in", "out"
"""Which way a link's messages go, as seen from the container."""

ANONYMOUS = "(anonymous)"
"""What is shown as the address of a link whose messages name theirs themselves."""


class PairedLinks(Protocol):
    """What pairs of links at `/management` lead to, in all virtual hosts."""

    def node_of(self, vhost: VirtualHost) -> Node:
        """Return what those in a virtual host lead to."""

    def end_connection(self, connection: Connection, vhost: VirtualHost) -> None:
        """Give up what was a connection's alone."""


@dataclass(slots=True, eq=False)
class Attachment:
    """What a link holds in the container, to be given back when it goes.

    Attributes:
        address: As shown to people.
        link_id: Unique in the container; the peer finds it in the attach's properties.
        entry: Where a consumer of plain routing takes from.
        node: Where any other consumer takes from, with its subscription.
        dynamic: The address to drop with the link.
        on_dropped: Called when it has been dropped.
        is_temporary: Whether a temporary node at its address goes with the link.
        rule: The address's rule; None for the anonymous relay.
        source: As a consumer attached it; None for a publisher.
        since_s: When it was attached, by the monotonic clock.
    """

    address: str
    link_id: str = ""
    entry: AddressEntry | None = None
    node: Node | None = None
    subscription: Subscription | None = None
    dynamic: str | None = None
    on_dropped: Callable[[], None] = do_nothing
    is_temporary: bool = False
    rule: AddressRule | None = None
    source: Source | None = None
    since_s: float = field(default_factory=time.monotonic)


class Attachments:
    """Takes links, and lets them go. Owned by the container.

    Attributes:
        limits: Window, message size.
        dynamic: Who has how many dynamic addresses.
        when_declared: Calls once all is known here that the cluster has declared by now; None where
            there is no cluster.
        hold: Has a newcomer wait that has connected, if clients wait now; tells whether it does.
        links: Those that stand, by link id.
        management_links: What pairs of links at `/management` lead to.
        kept: Those of consumers that have been detached and may be resumed.
    """

    def __init__(self, limits: Limits, reply_prefix: str, security: SecurityLog) -> None:
        """Start with none.

        Args:
            limits: Window, message size.
            reply_prefix: What dynamic addresses start with.
            security: Is told of what is refused, and of what is taken back.
        """
        self.dynamic = Tally("dynamic addresses")
        self._are_blocked = False
        self.limit(limits)
        self._reply_prefix = reply_prefix
        self._security = security
        self.links: dict[str, Link] = {}
        self.when_declared: Callable[[Callable[[], None]], None] | None = None
        self.hold: Callable[[Connection, Callable[[], None]], bool] = _hold_nobody
        self.management_links: PairedLinks | None = None
        self.kept = KeptLinks()
        self._makers: dict[str, Connection] = {}
        self._link_count = 0

    def limit(self, limits: Limits, own: OwnLimits = NOBODYS) -> None:
        """Take over limits, for what is attached from now on; `own` are those of single users."""
        self.limits = limits
        self.dynamic.limit(limits, own)

    def _count_dynamic(self, client: ClientContext) -> Callable[[], None]:
        """Count a dynamic address; return what counts it no longer.

        Raises:
            Refused: There are too many.
        """
        shares = client.shares
        excess = self.dynamic.excess(shares)
        if excess is not None:
            raise Refused(str(excess), Condition.RESOURCE_LIMIT_EXCEEDED)
        self.dynamic.take(shares)
        client.dynamic_addresses += 1

        def give_back() -> None:
            client.dynamic_addresses -= 1
            self.dynamic.give_back(shares)

        return give_back

    def take(self, link: Link, attach: Attach, client: ClientContext) -> None:
        """Decide over a link that the peer attaches.

        It is done later where that depends on what the cluster has declared, or while clients wait.
        """
        is_held = not _is_for_container(attach, client) and self.hold(
            link.session.connection, partial(_answer, link)
        )
        if is_held:
            link.put_off(partial(self._take_declared, link, attach, client))
        else:
            self._take_declared(link, attach, client)

    def _take_declared(self, link: Link, attach: Attach, client: ClientContext) -> None:
        go_on = partial(self._take_in_turn, link, attach, client)
        if self.when_declared is not None and _lacks_stream(attach, client):
            link.put_off(go_on)
            self.when_declared(partial(_answer, link))
        else:
            go_on()

    def _take_in_turn(self, link: Link, attach: Attach, client: ClientContext) -> None:
        """Decide over a link; later where one too many queues and streams are being made."""
        wait_s = 0.0
        if _makes_node(attach, client):
            try:
                wait_s = client.vhost.shares.wait_s(client.makers)
            except Refused as refusal:
                self._refuse(link, attach, refusal)
                return
        decide = partial(self._decide, link, attach, client)
        if wait_s:
            link.put_off(decide)
            asyncio.get_running_loop().call_later(wait_s, _answer, link)
        else:
            decide()

    def _decide(self, link: Link, attach: Attach, client: ClientContext) -> None:
        try:
            if attach.role is Role.SENDER:
                self._take_publisher(link, attach, client)
            else:
                self._take_consumer(link, attach, client)
        except Refused as refusal:
            self._refuse(link, attach, refusal)
        except FrameTooLarge as error:
            link.refuse(Condition.FRAME_SIZE_TOO_SMALL, str(error))

    def _refuse(self, link: Link, attach: Attach, refusal: Refused) -> None:
        self._note_refusal(link, attach, refusal)
        link.refuse(refusal.condition, refusal.description)

    def _note_refusal(self, link: Link, attach: Attach, refusal: Refused) -> None:
        is_sender = attach.role is Role.SENDER
        terminus = attach.target if is_sender else attach.source
        self._security.event(
            "attach_refused",
            **who_is(link.session.connection),
            direction=IN if is_sender else OUT,
            address=None if isinstance(terminus, Coordinator | None) else terminus.address,
            condition=str(refusal.condition),
            reason=refusal.description,
        )

    def tick(self, now_s: float) -> None:
        """Let time pass, once a second."""
        self.kept.tick(now_s)

    def permit_anew(self, connection: Peer, client: ClientContext) -> None:
        """Detach the links of a connection that its permissions do not allow any more."""
        for session in connection.sessions:
            for link in list(session.links.values()):
                if isinstance(link.context, Attachment):
                    self._permit_anew(link, link.context, client)

    def _permit_anew(self, link: Link, attachment: Attachment, client: ClientContext) -> None:
        """Detach a link that is not allowed any more, or take what it has beyond that."""
        if isinstance(link.end, IncomingLink) and attachment.address == ANONYMOUS:
            is_free, connection = client.is_free, link.session.connection
            link.end.permit = None if is_free else self._permits_of(connection, client)
            return
        right: Right = "send" if isinstance(link.end, IncomingLink) else "receive"
        is_reply = attachment.address.removeprefix("/").startswith(REPLY_PREFIX)
        is_free = is_reply or attachment.address == PAIRS  # what it asks for is looked at then
        is_allowed = not client.permissions.are_none if is_free else False
        if not is_allowed and not client.may(right, attachment.address):
            self._revoke(link, right, attachment.address, client)
        elif isinstance(attachment.node, Bindable) and isinstance(link.end, OutgoingLink):
            _unbind_forbidden(attachment.node, link.end, client)

    def _revoke(self, link: Link, right: Right, address: str, client: ClientContext) -> None:
        text = missing(right, address)
        log.info("a link of connection %d is detached: %s", client.number, text)
        self._security.event(
            "link_revoked",
            **who_is(link.session.connection),
            direction=IN if right == "send" else OUT,
            address=address,
            reason=text,
        )
        link.detach(AmqpError(condition=Condition.UNAUTHORIZED_ACCESS, description=text))

    def _permits_of(self, connection: Connection, client: ClientContext) -> Permits:
        """Return what a connection's messages may be sent to."""

        def note(address: str) -> None:
            self._security.event("send_refused", **who_is(connection), address=address)

        if client.permits is None:
            meant = partial(address_named, vhost=client.vhost)
            client.permits = Permits(client.permissions, client.vhost.name or None, note, meant)
        return client.permits

    def end_session(self, session: SessionEndpoint) -> None:
        """Go on to the end of what was kept for links of a session."""
        self.kept.end_session(session)

    def end_connection(self, connection: Connection, client: ClientContext) -> None:
        """Go on to the end of what was kept for a connection, and of its temporary nodes."""
        self.kept.end_connection(connection)
        client.vhost.temporary.remove_those_of(connection)
        if self.management_links is not None:
            self.management_links.end_connection(connection, client.vhost)

    def _enter(self, link: Link, attachment: Attachment) -> None:
        self._link_count += 1
        attachment.link_id = str(self._link_count)
        link.context = attachment
        self.links[attachment.link_id] = link

    # -- links on which the peer sends

    def _take_publisher(self, link: Link, attach: Attach, client: ClientContext) -> None:
        target = attach.target
        if isinstance(target, Coordinator):
            raise Refused("transactions are not offered", Condition.NOT_IMPLEMENTED)
        if target is None:
            raise Refused("a sender's target is missing", Condition.INVALID_FIELD)
        entry, address = None, target.address
        if target.dynamic:
            client.demand_any("send")
            on_removed = self._count_dynamic(client)
            address = new_address(self._reply_prefix)
            owner = link.session.connection
            node = client.vhost.temporary.add(address, target, owner)
            node.on_removed, entry = on_removed, node.entry
        elif address is not None:
            address, entry = self._target_of(attach, address, target, client)
        end = self._publisher_end(link, address, entry, client.vhost)
        end.settles_second = attach.rcv_settle_mode is ReceiverSettleMode.SECOND
        if entry is None:
            end.refuser = Refuser(client, self.when_declared)
            if not client.is_free:
                end.permit = self._permits_of(link.session.connection, client)
        attachment = Attachment(address or ANONYMOUS)
        attachment.is_temporary = target.dynamic and goes_with_its_link(target)
        self._enter(link, attachment)
        link.carry(end)
        link.attach(
            source=attach.source or Source(),
            target=Target(
                address=address if target.dynamic else target.address,
                durable=target.durable,
                dynamic=target.dynamic,
                dynamic_node_properties=target.dynamic_node_properties,
                capabilities=target.capabilities,
            ),
            snd_settle_mode=attach.snd_settle_mode,
            rcv_settle_mode=attach.rcv_settle_mode,
            max_message_size=self.limits.max_message_size_bytes,
            properties=_properties(attachment),
        )
        if entry is not None:
            assert address is not None
            entry.add_source(end)
            if not target.dynamic and address != PAIRS:
                client.vhost.add_publisher(address, entry)
        if (self._are_blocked or client.is_held) and _may_block(link):
            end.end_credit()
        end.open_credit()

    def _target_of(
        self, attach: Attach, address: str, target: Target, client: ClientContext
    ) -> tuple[str, AddressEntry]:
        """Return the address that a sender means, and where its messages come in.

        Raises:
            Refused: The client may not send there, or nothing can be sent there.
        """
        if is_paired(attach, address):
            client.demand_any("send")
            return PAIRS, self._pairs_of(client).entry(PAIRS)
        address = address_meant(address, target.capabilities, client.vhost)
        return address, _entry_for(address, target, client)

    def _publisher_end(
        self, link: Link, address: str | None, entry: AddressEntry | None, vhost: VirtualHost
    ) -> IncomingLink:
        """Make the compiled end; of another class where its messages are held to schemas."""
        limits = self.limits
        is_stream = address is not None and _is_stream(address, vhost)
        credit = limits.link_credit * (STREAM_CREDIT if is_stream else 1)
        place = (entry, vhost.space, credit, limits.max_message_size_bytes)
        checkpoint = vhost.schemas.checkpoint_of(address) if vhost.schemas is not None else None
        if checkpoint is None:
            return IncomingLink(link.session.end, link.handle, *place)
        name = None if address is None else address.encode()
        return CheckedLink(link.session.end, link.handle, checkpoint, name, *place)

    # -- links on which the peer receives

    def _take_consumer(self, link: Link, attach: Attach, client: ClientContext) -> None:
        source = attach.source
        if source is None:
            # So JMS looks for a durable subscription by its name, to delete it.
            text = f"there is no subscription {attach.name!r:.200}: a source says where it receives"
            raise Refused(text, Condition.NOT_FOUND)
        demand_known_mode(source)
        if is_paired(attach, source.address):
            client.demand_any("receive")
            attachment = Attachment(PAIRS, node=self._pairs_of(client))
        else:
            attachment = self._place_consumer(source, client, link.session.connection)
        demand_kept(source, attachment.rule)
        filters = read_filters(
            source.filter,
            known=attachment.node.filters if isinstance(attachment.node, Streaming) else None,
            size_bytes_max=self._size_bytes_max(attach),
        )
        if attachment.entry is not None and attachment.dynamic is None:
            place = (attachment.address, attachment.entry)
            client.vhost.holders.claim(link, source, *place, client)
        end = OutgoingLink(
            link.session.end,
            link.handle,
            attach.snd_settle_mode is SenderSettleMode.SETTLED,
        )
        if (source.address or "").startswith(RABBITMQ_QUEUES):
            end.annotate = annotator_of(attachment.address.partition("/")[2])
        end.selector = filters.selector
        end.no_local = filters.no_local
        attachment.source = source
        self._enter(link, attachment)
        if attachment.rule is not None:
            end.policy = POLICY_CODES[attachment.rule.slow_subscriber]
            end.backlog_bytes_max = attachment.rule.block_bytes
        if attachment.node is not None:
            self._subscribe(link, attach, attachment, end)
        link.carry(end)
        if attachment.entry is not None:
            client.vhost.add_consumer(attachment.address, attachment.entry, end)
        code, outcome = outcome_of(source)
        if code:
            end.set_default_outcome(code, outcome)
        expiry_policy, timeout_s = _expiry_of(source, attachment)
        agreed = Source(
            address=attachment.address if source.dynamic else source.address,
            dynamic=source.dynamic,
            expiry_policy=expiry_policy,
            timeout=timeout_s,
            distribution_mode=mode_of(source, attachment.rule),
            filter=filters.applied or None,
            default_outcome=source.default_outcome or Released(),
            outcomes=_OUTCOMES,
            capabilities=source.capabilities,
        )
        link.put_off(partial(self._agree, link, attach, client, agreed))
        subscription = attachment.subscription
        is_put_off = subscription is not None and subscription.is_put_off
        if not self._asks_elsewhere(attach, attachment, client) and not is_put_off:
            link.answer()

    def _pairs_of(self, client: ClientContext) -> Node:
        """Return what pairs of links lead to in a client's virtual host."""
        if self.management_links is None:
            raise Refused("there is no '/management' here", Condition.NOT_FOUND)
        return self.management_links.node_of(client.vhost)

    def _size_bytes_max(self, attach: Attach) -> int | None:
        """Return what a receiver takes at most, where it is less than what anybody may send."""
        asked = attach.max_message_size
        return asked if asked and asked < self.limits.max_message_size_bytes else None

    def _asks_elsewhere(
        self, attach: Attach, attachment: Attachment, client: ClientContext
    ) -> bool:
        """Let a consumer receive from other containers; tell whether its link is answered later."""
        reach, subscription = client.vhost.reach, attachment.subscription
        if reach is None or subscription is None or attachment.node is None:
            return False
        if subscription.address.startswith(REPLY_PREFIX):
            return False  # it is nowhere else
        return reach.queue_federation.add_consumer(attachment.node, subscription, attach)

    def _place_consumer(
        self, source: Source, client: ClientContext, connection: Connection
    ) -> Attachment:
        if source.dynamic:
            client.demand_any("receive")
            on_dropped = self._count_dynamic(client)
            address = new_address(self._reply_prefix)
            self._makers[address] = connection
            entry = client.vhost.add_dynamic(address)
            return Attachment(address, entry=entry, dynamic=address, on_dropped=on_dropped)
        if source.address is None:
            raise Refused("a receiver's source names no address", Condition.INVALID_FIELD)
        temporary = client.vhost.temporary.of(source.address, connection)
        if temporary is not None:
            where, rule = temporary.address, temporary.rule
            if temporary.queue is not None:
                return Attachment(where, node=temporary.queue, rule=rule)
            return Attachment(where, entry=temporary.entry, rule=rule)
        address = address_meant(source.address, source.capabilities, client.vhost)
        if not is_reply_address(address):
            client.demand("receive", address)
        name, rule = client.vhost.rule_of(address)
        if name.startswith(REPLY_PREFIX) and self._makers.get(name) is not connection:
            text = f"{name!r:.200}: only the connection that made it receives from it"
            raise Refused(text, Condition.RESOURCE_LOCKED)
        standings = client.vhost.standings
        if standings is not None and standings.is_locked(name, connection):
            text = f"{name!r:.200}: only the connection that declared it receives from it"
            raise Refused(text, Condition.RESOURCE_LOCKED)
        if rule.kind != "direct":
            node = client.vhost.nodes.of(rule, name, client.makers)
            return Attachment(address, node=node, rule=rule)
        if source.distribution_mode == COPY and rule.distribution is not Distribution.MULTICAST:
            raise Refused(f"{name!r} stores nothing, so there is nothing to browse")
        return Attachment(address, entry=client.vhost.entry_of(name), rule=rule)

    def _subscribe(
        self, link: Link, attach: Attach, attachment: Attachment, end: OutgoingLink
    ) -> None:
        assert attach.source is not None
        assert attachment.node is not None
        subscription = Subscription(
            link=end,
            address=attachment.address.removeprefix("/"),
            source=attach.source,
            marks_received=MARKS_RECEIVED in attach.desired_capabilities,
            desired=frozenset(attach.desired_capabilities),
            unsettled=tuple(attach.unsettled or ()),
            link_id=attachment.link_id,
        )
        attachment.subscription = subscription
        try:
            attachment.node.subscribe(subscription)
        except Refused:
            link.context = None
            del self.links[attachment.link_id]
            end.owner = link
            end.detach()
            raise

    # -- letting go

    def end_credit(self, *, has_all_end: bool) -> bool:
        """Have clients send no more; tell whether any could. What they have sent is taken.

        Args:
            has_all_end: Whether those end as well who may have to send something for what they
                were given: a reply, or what becomes of an item that they have not settled.
        """
        ends = [
            end
            for link, end in self._publishers()
            if end.window and (has_all_end or not _may_answer(link))
        ]
        for end in ends:
            end.end_credit()
        return bool(ends)

    def block(self, are_blocked: bool) -> None:
        """Have clients send nothing for a while, or again; requests to the container go on."""
        self._are_blocked = are_blocked
        for link, end in self._publishers():
            if are_blocked and _may_block(link):
                end.end_credit()
            elif not are_blocked and not self._is_held(link):
                end.resume_credit(self._window_of(link))

    def _window_of(self, link: Link) -> int:
        """Return the credit of a link on which a client sends."""
        attachment, client = link.context, cast("ClientContext", link.session.connection.context)
        assert isinstance(attachment, Attachment)
        is_stream = attachment.address != ANONYMOUS and _is_stream(attachment.address, client.vhost)
        return self.limits.link_credit * (STREAM_CREDIT if is_stream else 1)

    @property
    def unanswered(self) -> int:
        """Counts the deliveries that clients have sent and not been answered."""
        return sum(end.unsettled for _, end in self._publishers())

    def hold_credit(self, connection: Connection) -> None:
        """Have one client send nothing for a while."""
        for _, end in self._publishers_of(connection):
            end.end_credit()

    def hold_credit_of_held(self) -> None:
        """Have clients send nothing but requests to the container that are held from now on."""
        for link, end in self._publishers():
            if end.window and self._is_held(link) and _may_block(link):
                end.end_credit()

    def _is_held(self, link: Link) -> bool:
        client = link.session.connection.context
        return isinstance(client, ClientContext) and client.is_held

    def give_credit(self, connection: Connection) -> None:
        """Have it send again, unless all wait."""
        for link, end in self._publishers_of(connection):
            is_blocked = self._are_blocked or self._is_held(link)
            if not (is_blocked and _may_block(link)):
                end.resume_credit(self._window_of(link))

    def unanswered_of(self, connection: Connection) -> int:
        """Count the deliveries that one client has sent and that are not answered."""
        return sum(end.unsettled for _, end in self._publishers_of(connection))

    def _publishers_of(self, connection: Connection) -> list[tuple[Link, IncomingLink]]:
        return [each for each in self._publishers() if each[0].session.connection is connection]

    def _publishers(self) -> Iterator[tuple[Link, IncomingLink]]:
        """Yield the links on which clients send; on others, containers do."""
        for link in self.links.values():
            client = cast("ClientContext", link.session.connection.context)
            if client.is_counted and isinstance(link.end, IncomingLink):
                yield link, link.end

    def release(self, link: Link, client: ClientContext) -> None:
        """Give back what a link holds; called before its compiled half ends."""
        attachment = link.context
        if not isinstance(attachment, Attachment):
            return
        link.context = None
        self.links.pop(attachment.link_id, None)
        if attachment.entry is not None and link.end is not None:
            assert isinstance(link.end, OutgoingLink)
            _conclude(link, attachment)
            client.vhost.holders.release(link, attachment.address)
            client.vhost.remove_consumer(attachment.address, attachment.entry, link.end)
            if isinstance(client.listen, Inside) and attachment.entry.is_idle:
                # The last service of a gateway's that leaves takes its address along.
                client.vhost.drop(attachment.address.removeprefix("/"))
        if attachment.subscription is not None and attachment.node is not None:
            self._unsubscribe(link, client, attachment, attachment.subscription)
        if attachment.dynamic is not None:
            client.vhost.drop(attachment.dynamic)
            attachment.on_dropped()
            self._makers.pop(attachment.dynamic, None)
        if attachment.is_temporary and not link.was_left:
            client.vhost.temporary.remove(attachment.address)

    def _unsubscribe(
        self, link: Link, client: ClientContext, attachment: Attachment, subscription: Subscription
    ) -> None:
        """Let a node's consumer go, or keep what it has for the link that resumes this one."""
        node, source = attachment.node, subscription.source
        assert node is not None
        subscription.departure = Departure.LOST
        if link.is_lost:
            _let_go(node, subscription, client)
            return
        subscription.departure = Departure.ORDERLY
        if not isinstance(node, Resumable):
            _let_go(node, subscription, client)
            if not isinstance(node, Storing):
                _conclude(link, attachment)
            return
        max_s = node.in_doubt_timeout_s
        if kept_s(source, link.ending, max_s) != 0 and _keeps(node, subscription, client):
            give_up = partial(_give_up, node, subscription, client)
            key = key_of(link, client.vhost.name)
            subscription.link.leave()
            self.kept.keep(KeptLink(key, link.session, source, max_s, give_up), link.ending)
        else:
            _let_go(node, subscription, client)

    def _agree(self, link: Link, attach: Attach, client: ClientContext, source: Source) -> None:
        """Answer a consumer's attach; it has resumed what it presents of an earlier link's."""
        attachment = link.context
        if isinstance(attachment, Attachment):
            _agree(link, attach, attachment, source)
        if attach.role is Role.RECEIVER:
            self.kept.give_up(self.kept.find(key_of(link, client.vhost.name)))


def _address_of(attach: Attach) -> str | None:
    """Return the address that an attach names; None where it names none."""
    terminus = attach.target if attach.role is Role.SENDER else attach.source
    if isinstance(terminus, Coordinator | None) or terminus.dynamic:
        return None
    return terminus.address


def _hold_nobody(_connection: Connection, _go_on: Callable[[], None]) -> bool:
    return False


def _is_for_container(attach: Attach, client: ClientContext) -> bool:
    """Tell whether a link is for requests to the container itself, or for answers to them."""
    is_dynamic = isinstance(attach.source, Source) and attach.source.dynamic
    if isinstance(client.listen, Inside) or (attach.role is Role.RECEIVER and is_dynamic):
        return True
    address = _address_of(attach)
    return is_paired(attach, address) or (address or "").lstrip("/").startswith("$")


def _lacks_stream(attach: Attach, client: ClientContext) -> bool:
    """Tell whether an attach is to a stream that is not declared, as far as is known here."""
    address = _address_of(attach)
    return address is not None and client.vhost.lacks_stream(address)


def _makes_node(attach: Attach, client: ClientContext) -> bool:
    """Tell whether an attach, if it is allowed, makes a queue or stream."""
    address = _address_of(attach)
    if address is None:
        return False
    terminus = attach.target if attach.role is Role.SENDER else attach.source
    assert isinstance(terminus, Source | Target)
    try:
        meant = address_meant(address, terminus.capabilities, client.vhost)
        return client.vhost.lacks_node(*client.vhost.rule_of(meant))
    except Refused:  # as the attach will be
        return False


def _properties(attachment: Attachment) -> dict[Symbol, object]:
    """Return the properties of the answer to an attach."""
    is_pair = attachment.address == PAIRS
    return {LINK_ID: attachment.link_id, **({PAIRED: True} if is_pair else {})}


def _answer(link: Link) -> None:
    link.answer()
    link.session.connection.flush()


def _entry_for(address: str, target: Target, client: ClientContext) -> AddressEntry:
    """Find where the messages of a link to an address come in.

    Raises:
        Refused: The client may not send there, or nothing can be sent there.
    """
    client.demand("send", address)
    if is_reply_address(address):
        client.vhost.demand_reply_address(address)
    if STREAM in target.capabilities and not _is_stream(address, client.vhost):
        raise Refused(f"{address!r:.200} is no stream", Condition.PRECONDITION_FAILED)
    entry = client.vhost.entry_of(address, client.makers)
    node = client.vhost.nodes.get(address.removeprefix("/"))
    if isinstance(node, Streaming):
        node.demand_prospects()
    return entry


def _let_go(node: Node, subscription: Subscription, client: ClientContext) -> None:
    if client.vhost.reach is not None:
        client.vhost.reach.queue_federation.remove_consumer(subscription)
    node.unsubscribe(subscription)


def _keeps(node: Resumable, subscription: Subscription, client: ClientContext) -> bool:
    """Keep what a consumer has; return whether it has anything."""
    subscription.departure = Departure.KEPT
    node.unsubscribe(subscription)
    has_any = node.keeps(subscription)
    if client.vhost.reach is not None:
        has_any = client.vhost.reach.queue_federation.keep_consumer(subscription) or has_any
    subscription.departure = Departure.ORDERLY
    return has_any


def _give_up(
    node: Resumable, subscription: Subscription, client: ClientContext, departure: Departure
) -> None:
    """Keep what a consumer has no longer."""
    subscription.departure = departure
    _let_go(node, subscription, client)


def _conclude(link: Link, attachment: Attachment) -> None:
    """Answer for what a consumer of messages that nothing stores has not settled.

    A client that marks what its application was given may have begun with it: it is in doubt then,
    unless the source names an outcome. A copy is its subscriber's alone: it is released.
    """
    assert attachment.source is not None
    assert isinstance(link.end, OutgoingLink)
    code, outcome = outcome_of(attachment.source)
    marks = link.remote is not None and MARKS_RECEIVED in link.remote.desired_capabilities
    rule = attachment.rule
    is_copy = rule is not None and rule.distribution is Distribution.MULTICAST
    if not link.is_lost and (code or is_copy or not marks):
        link.end.conclude(code or RELEASED, outcome)


def _expiry_of(source: Source, attachment: Attachment) -> tuple[ExpiryPolicy, int]:
    if isinstance(attachment.node, Resumable):
        return agreed_expiry(source, attachment.node.in_doubt_timeout_s)
    return expiry_of(source, attachment.rule), 0


def _may_block(link: Link) -> bool:
    """Tell whether what its client sends there may wait: not what is for the container itself."""
    attachment = link.context
    return isinstance(attachment, Attachment) and not attachment.address.lstrip("/").startswith("$")


def _may_answer(link: Link) -> bool:
    """Return whether what its client sends there may be for what it was given, or hold."""
    attachment = link.context
    assert isinstance(attachment, Attachment)
    address = attachment.address.removeprefix("/")
    if address == ANONYMOUS or address.startswith(REPLY_PREFIX):
        return True
    return any(session.end.unsettled for session in link.session.connection.sessions)


def _is_stream(address: str, vhost: VirtualHost) -> bool:
    """Return whether an address is one of streams, be there one or not."""
    return vhost.rule_of(address)[1].kind == "stream"


def _agree(link: Link, attach: Attach, attachment: Attachment, source: Source) -> None:
    """Answer a consumer's attach."""
    try:
        link.attach(
            source=source,
            target=attach.target if isinstance(attach.target, Target) else Target(),
            snd_settle_mode=attach.snd_settle_mode,
            rcv_settle_mode=attach.rcv_settle_mode,
            unsettled=_known(attach, attachment.subscription),
            properties=_properties(attachment),
        )
    except FrameTooLarge as error:
        link.refuse(Condition.FRAME_SIZE_TOO_SMALL, str(error))


def _unbind_forbidden(node: Bindable, end: OutgoingLink, client: ClientContext) -> None:
    """Take patterns from a subscriber which it may not receive any more."""
    for pattern in node.patterns_of(end):
        if not client.may("receive", f"{node.root.name}{pattern}"):
            node.unbind(end, pattern.encode())


def _known(
    attach: Attach, subscription: Subscription | None
) -> dict[bytes, DeliveryState | None] | None:
    """Answer what a consumer holds from an earlier link (AMQP 1.0 §2.6.13)."""
    if not attach.unsettled:
        return None
    return subscription.known if subscription is not None else {}
