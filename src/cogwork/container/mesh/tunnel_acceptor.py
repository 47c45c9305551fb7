"""Takes the links that other containers attach here, in their tunnels.

What comes by them has been routed already: it goes to this container's own consumers and nodes, and
never out again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import Condition, FrameTooLarge
from cogwork.amqp.extensions import MARKS_RECEIVED
from cogwork.amqp.performatives import Attach, Role, SenderSettleMode
from cogwork.amqp.terminus import Source, Target
from cogwork.container.connections.node_shares import FROM_AFAR
from cogwork.container.federation.move_intake import MoveIntake
from cogwork.container.federation.questions import answer, standing_of
from cogwork.container.federation.remote_consumer import RemoteConsumer
from cogwork.container.mesh.names import (
    CONSUMER,
    FORWARDED,
    HOMED,
    MARKS_REDELIVERED,
    MISSED,
    MOVE,
    OWNED,
    QUESTION,
    REMOTE_CONSUMER,
    VHOST,
)
from cogwork.container.mesh.subscriber_gaps import detach_stale_subscribers, read_gaps
from cogwork.container.mesh.tunnels import origin_of
from cogwork.container.vhost.filters import read_filters
from cogwork.container.vhost.unroutable import answer_from_elsewhere
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Shareable, replica_of
from cogwork.plugin.node import Refused, Subscription
from cogwork.plugin.node_kinds import provides

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.link import Link

__all__ = ("TunnelAcceptor",)

WINDOW = 10_000
"""Deliveries of one address on their way between two containers."""


class TunnelAcceptor:
    """Decides over attaches of other containers."""

    def __init__(self, mesh: MeshService, vhosts: Mapping[str, VirtualHost]) -> None:
        self._mesh = mesh
        self._vhosts = vhosts
        self._intakes: dict[str, MoveIntake] = {}
        self._has_ended_credit = self._are_blocked = False

    def _intake_of(self, vhost: str) -> MoveIntake:
        found = self._intakes.get(vhost)
        if found is None:
            made = MoveIntake(self._mesh.core, lambda: self._mesh.is_leaving)
            found = self._intakes[vhost] = made
        return found

    def remove_vhost(self, name: str) -> None:
        """Take nothing more into a virtual host that is gone."""
        self._intakes.pop(name, None)

    def take(self, link: Link, attach: Attach) -> None:
        """Accept or refuse a link."""
        try:
            if origin_of(link.session) is None:
                raise Refused("a link outside of a tunnel")
            vhost = self._vhosts.get(str((attach.properties or {}).get(VHOST, "")))
            if vhost is None:
                raise Refused("a virtual host that is not served here", Condition.NOT_FOUND)
            self._detach_stale(link, attach, vhost)
            if attach.role is Role.SENDER:
                self._take_sender(link, attach, vhost)
            else:
                self._take_receiver(link, attach, vhost)
        except Refused as refusal:
            link.refuse(refusal.condition, refusal.description)
        except FrameTooLarge as error:
            link.refuse(Condition.FRAME_SIZE_TOO_SMALL, str(error))

    def sweep(self) -> None:
        """Forget what containers brought that have gone."""
        known = (record.advertisement for record in self._mesh.mesh.database)
        lives = {each.origin: each.life or each.incarnation for each in known}
        for intake in self._intakes.values():
            intake.forget_all_but(lives)

    def end_credit(self) -> bool:
        """Have others send nothing more to queues here; tell whether any could.

        What they have sent is taken. They hold what comes later, until the queue has another owner.
        """
        self._has_ended_credit = True
        ends = [end for end in self._ends_into_queues() if end.window]
        for end in ends:
            end.end_credit()
        return bool(ends)

    def block(self, are_blocked: bool) -> None:
        """Have others send nothing to queues here for a while, or again: they hold what comes."""
        self._are_blocked = are_blocked
        if self._has_ended_credit:
            return
        for end in self._ends_into_queues():
            if are_blocked:
                end.end_credit()
            else:
                end.resume_credit(WINDOW)

    @property
    def unanswered(self) -> int:
        """Counts the deliveries to queues here that others have sent and not been answered."""
        return sum(end.unsettled for end in self._ends_into_queues())

    def _ends_into_queues(self) -> Iterator[IncomingLink]:
        for connection in self._mesh.data_connections():
            for session in connection.sessions:
                if origin_of(session) is None:
                    continue
                for link in session.links.values():
                    if isinstance(link.end, IncomingLink) and self._leads_into_queue(link.remote):
                        yield link.end

    def _leads_into_queue(self, attach: Attach | None) -> bool:
        """Return whether another container sends to a queue by a link."""
        target = None if attach is None else attach.target
        if attach is None or not isinstance(target, Target) or target.address is None:
            return False
        vhost = self._vhosts.get(str((attach.properties or {}).get(VHOST, "")))
        if target.address == FORWARDED:
            return False
        return vhost is not None and provides(vhost.rule_of(target.address)[1].kind, Shareable)

    def _demand_known(self, vhost: VirtualHost, address: str) -> None:
        """Refuse a queue or stream that is not here, while the cluster may have declared it.

        It would be one by the address's rule, and in the way of what is declared; others would take
        it for that and believe what it says of their items.
        """
        name, rule = vhost.rule_of(address)
        is_kept = rule.kind in ("queue", "stream")
        if is_kept and name not in vhost.nodes and not self._mesh.readiness.holds_all():
            raise Refused(f"{name!r} is not known here yet", Condition.NOT_FOUND)

    def _demand_home(self, vhost: VirtualHost, address: str, attach: Attach) -> None:
        """Refuse what is meant for a queue's home if this container is not that, or not yet.

        Items that were put into a part of another kind would be seen by nobody else.
        """
        name, rule = vhost.rule_of(address)
        if OWNED in (attach.properties or {}) and replica_of(vhost.nodes.get(name)) is None:
            # Deleted here a moment before there: to make it anew would keep it for ever.
            raise Refused(f"{name!r} is not replicated here", Condition.NOT_FOUND)
        home = rule.options.get("home")
        is_meant = HOMED in (attach.properties or {})
        if home != self._mesh.id and (is_meant or home is not None):
            raise Refused(f"{name!r:.200} does not have its home here", Condition.NOT_FOUND)

    def _detach_stale(self, link: Link, attach: Attach, vhost: VirtualHost) -> None:
        """Detach subscribers that have missed something, once this attach is dealt with."""
        missed = read_gaps((attach.properties or {}).get(MISSED))
        if missed:
            origin = str(origin_of(link.session))
            asyncio.get_running_loop().call_soon(self._detach_stale_now, vhost, origin, missed)

    def _detach_stale_now(self, vhost: VirtualHost, origin: str, missed: dict[str, float]) -> None:
        detach_stale_subscribers(vhost, origin, missed)
        self._mesh.core.flush()

    def _take_sender(self, link: Link, attach: Attach, vhost: VirtualHost) -> None:
        target = attach.target
        if not isinstance(target, Target):
            raise Refused("a sender without a target", Condition.INVALID_FIELD)
        if MOVE in (attach.properties or {}):
            self._take_items(link, attach, vhost)
            return
        entry = None
        if target.address == FORWARDED:
            entry = vhost.forwarded
        elif target.address is not None:
            self._demand_known(vhost, target.address)
            self._demand_home(vhost, target.address, attach)
            entry = vhost.near_entry_of(target.address)
        end = IncomingLink(link.session.end, link.handle, entry, vhost.near, WINDOW)
        if entry is None:
            end.refuser = partial(answer_from_elsewhere, vhost)
        # Its tags tell what is sent again.
        end.wants_tags = not {HOMED, OWNED}.isdisjoint(attach.properties or {})
        link.carry(end)
        link.attach(
            source=attach.source or Source(),
            target=Target(address=target.address),
            snd_settle_mode=attach.snd_settle_mode,
        )
        if entry is not None:
            entry.add_source(end)
        if (self._has_ended_credit or self._are_blocked) and self._leads_into_queue(attach):
            end.end_credit()
        end.open_credit()

    def _take_items(self, link: Link, attach: Attach, vhost: VirtualHost) -> None:
        """Take a link by which a container that leaves moves items here."""
        target = attach.target
        address = target.address if isinstance(target, Target) else None
        origin = origin_of(link.session)
        if address is None or origin is None:
            raise Refused("items without a queue", Condition.INVALID_FIELD)
        if not isinstance((attach.properties or {}).get(MOVE), int):
            raise Refused(f"{MOVE} is no incarnation", Condition.INVALID_FIELD)
        if self._mesh.is_leaving:
            raise Refused("this container is leaving, too")
        name, rule = vhost.rule_of(address)
        if not provides(rule.kind, Shareable):
            raise Refused(f"{name!r} is not a queue: only items of queues move")
        self._demand_known(vhost, name)
        vhost.entry_of(name, FROM_AFAR)
        node = vhost.nodes.of(rule, name, FROM_AFAR)
        assert isinstance(node, Shareable)
        self._intake_of(vhost.name).take(link, attach, origin, node)

    def _take_receiver(self, link: Link, attach: Attach, vhost: VirtualHost) -> None:
        source = attach.source
        if source is None or source.address is None:
            raise Refused("a receiver whose source names no queue", Condition.INVALID_FIELD)
        name, rule = vhost.rule_of(source.address)
        if not provides(rule.kind, Shareable):
            raise Refused(f"{name!r} is not a queue: only queues are shared between containers")
        self._demand_known(vhost, name)
        self._demand_home(vhost, name, attach)
        node = vhost.nodes.of(rule, name, FROM_AFAR)
        replica = replica_of(node)
        if replica is not None and replica.epoch is None:
            raise Refused(f"{name!r} is owned by another container", Condition.NOT_FOUND)
        if QUESTION in (attach.properties or {}):
            answer(vhost, node, link, attach)
            return
        filters = read_filters(source.filter, size_bytes_max=attach.max_message_size)
        held = attach.unsettled or {}
        is_settled = attach.snd_settle_mode is SenderSettleMode.SETTLED
        end = OutgoingLink(link.session.end, link.handle, is_settled)
        end.selector = filters.selector
        end.marks_acquired = MARKS_REDELIVERED in attach.desired_capabilities
        subscription = Subscription(
            link=end,
            address=name,
            source=source,
            marks_received=MARKS_RECEIVED in attach.desired_capabilities,
            is_far=True,
            remote_consumer=str((attach.properties or {}).get(REMOTE_CONSUMER, "")),
            unsettled=tuple(held),
            handed=frozenset(tag for tag, state in held.items() if state is not None),
        )
        consumer = RemoteConsumer(node, subscription, link)
        claim = (attach.properties or {}).get(CONSUMER)
        if isinstance(claim, dict) and replica is not None:
            end.priority = int(claim.get("priority", 0))
            consumer.is_exclusive = bool(claim.get("exclusive"))
            consumer.ticket = int(claim.get("ticket", 0))
            consumer.is_fetching = bool(claim.get("fetch"))
            consumer.standing = standing_of(vhost, name)
        consumer.begin()
        link.context = consumer
        link.carry(end)
        link.attach(
            source=Source(address=name, filter=filters.applied or None),
            target=Target(),
            snd_settle_mode=attach.snd_settle_mode,
            rcv_settle_mode=attach.rcv_settle_mode,
            unsettled=subscription.known if held else None,
        )
