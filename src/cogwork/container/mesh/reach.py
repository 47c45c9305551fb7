"""What one virtual host can reach in other containers, and the links by which it does.

Theory of operation. Other containers say what they want: patterns of topics, and addresses with
consumers. What they want of topics has `Branches`; publishers that name their topic in the target
have a link of their own address in a branch's place. An anycast address that somebody sends to has
a link to each container with consumers, an outlet like a consumer's, at the cost of the way. Reply
addresses name their container and need no interest.

A container that wants something and cannot be reached is lost, as who publishes learns; after
`LOST_HOLD_S` its subscribers count as gone. They are told so if they were not (`subscriber_gaps`).
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from cogwork.amqp.errors import Condition
from cogwork.amqp.performatives import Role
from cogwork.amqp.terminus import Source, Target
from cogwork.container.federation.claims import Claims
from cogwork.container.federation.disks import Disks
from cogwork.container.federation.homes import Homes
from cogwork.container.federation.owners import Owners
from cogwork.container.federation.partitions import Partitions
from cogwork.container.federation.questions import Questions
from cogwork.container.federation.queue_federation import QueueFederation
from cogwork.container.mesh.away import Away
from cogwork.container.mesh.branches import Branches, topic_of
from cogwork.container.mesh.elsewhere import Elsewhere
from cogwork.container.mesh.forwarding import Forwarding
from cogwork.container.mesh.names import HOMED, MISSED, VHOST
from cogwork.container.mesh.reply_routes import ReplyRoutes
from cogwork.container.mesh.subscriber_gaps import SubscriberGaps
from cogwork.container.vhost.reply_addresses import REPLY_PREFIX
from cogwork.dataplane.addresses.entry import MULTICAST_CODE
from cogwork.dataplane.addresses.lost_branch import LostBranch
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Bindable
from cogwork.router.exchanges.forwards import BINDING_PREFIX
from cogwork.router.mesh.messages import Interest, InterestKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.amqp.errors import AmqpError
    from cogwork.amqp.types import Symbol
    from cogwork.container.mesh.away import Opener
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.mesh.told_interests import ToldInterests
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.addresses.entry import AddressEntry
    from cogwork.dataplane.terminus import Terminus

__all__ = ("Reach",)

LOST_HOLD_S = 10.0
"""So long the subscribers of a container that cannot be reached are waited for."""

NOTHING: Mapping[Symbol, object] = MappingProxyType({})

BACKLOG_BYTES_MAX = 16 * 1024 * 1024
"""What may wait for one container before an address's policy steps in."""


class _Keeper(Protocol):
    """Takes note of what other containers say of one kind."""

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of what another container says."""

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that it says so no longer."""


class Reach:
    """Owned by the mesh, one for each virtual host.

    Attributes:
        vhost: The virtual host.
        core: The data plane.
        container_id: This container's.
        queue_federation: Its queues' consumers on other containers, and remote items.
        partitions: Its queues whose messages each have one container that takes them.
        owners: Its replicated queues.
        homes: Its queues whose homes are other containers.
        questions: What it asks those who own them.
        disks: Which containers keep which of its queues on disk.
        claims: Which of its addresses receivers elsewhere have for themselves.
        gaps: What containers that were given up have not got.
        reply_routes: To reply addresses of other containers.
        forwarding: To private queues of other containers.
    """

    def __init__(self, mesh: MeshService, vhost: VirtualHost) -> None:
        self.vhost = vhost
        self._mesh = mesh
        self._lost = LostBranch(mesh.core)
        self._wanted = Elsewhere()
        self._used: dict[str, AddressEntry] = {}
        self._ways: dict[str, dict[str, Away]] = {}
        self._topic_entries: dict[str, AddressEntry] = {}
        self._consumers: dict[str, int] = {}
        self._given_up: set[str] = set()
        self._gone: set[str] = set()
        self._count = 0
        self._leaving: list[Away] = []
        self.queue_federation = QueueFederation(mesh, vhost)
        self.partitions = Partitions(mesh, vhost, self)
        self.owners = Owners(mesh, vhost, self)
        self.homes = Homes(
            mesh.id,
            mesh.incarnation,
            vhost.nodes,
            open_way=self._open_home,
            is_reachable=self._is_reachable,
            follow=self.queue_federation.follow,
            restore_later=self.open_later,
            flush=mesh.core.flush,
        )
        self.questions = Questions(
            mesh.id,
            vhost,
            session_to=mesh.tunnels.to,
            is_reachable=self._is_reachable,
        )
        self.disks = Disks(mesh, vhost)
        self.claims = Claims(mesh, vhost)
        self.core = mesh.core
        self.container_id = mesh.id
        self.forwarding = Forwarding(self, vhost.exchanges)
        self._keepers: dict[int, _Keeper] = {
            InterestKind.QUEUE: self.queue_federation,
            InterestKind.PARTITIONS: self.partitions,
            InterestKind.OWNER: self.owners,
            InterestKind.DISK: self.disks,
            InterestKind.CLAIM: self.claims,
        }
        self.gaps = SubscriberGaps(mesh)
        self._branches = Branches(mesh, vhost, self, self.gaps)
        self.reply_routes = ReplyRoutes(mesh, self)

    def start(self) -> None:
        """Have the virtual host ask here for what it does not have itself."""
        self.vhost.reach = self
        for address, node in self.vhost.nodes.items():
            self.partitions.add(address, node)
            self.homes.changed(address)
            self.disks.changed(address)
            if isinstance(node, Bindable):
                node.announce()
        self.forwarding.start()

    def _open_home(
        self, container: str, address: str, entry: AddressEntry, opener: Opener
    ) -> Away | None:
        return self.open(container, address, entry, opener, {HOMED: True})

    def _is_reachable(self, container: str) -> bool:
        return self._mesh.mesh.routes.is_reachable(container)

    @property
    def told_interests(self) -> ToldInterests:
        """What this container wants, as its neighbours know it."""
        return self._mesh.told_interests

    # -- what this container wants

    def subscribe(self, address: str) -> None:
        """Count a subscription to a multicast address, which may hold wildcards."""
        self._mesh.subscribe(self.vhost.name, address)

    def unsubscribe(self, address: str) -> None:
        """Count one less."""
        self._mesh.unsubscribe(self.vhost.name, address)

    def add_consumer(self, address: str, entry: AddressEntry) -> None:
        """Count a consumer of a plain address."""
        if entry.distribution == MULTICAST_CODE:
            self.subscribe(address)
            return
        count = self._consumers[address] = self._consumers.get(address, 0) + 1
        if count == 1:
            self._mesh.set_interest(self._interest(address, 1))

    def remove_consumer(self, address: str, entry: AddressEntry) -> None:
        """Count one less."""
        if entry.distribution == MULTICAST_CODE:
            self.unsubscribe(address)
            return
        count = self._consumers.get(address, 0) - 1
        if count > 0:
            self._consumers[address] = count
        elif self._consumers.pop(address, None) is not None:
            self._mesh.set_interest(self._interest(address, 0))

    def _interest(self, address: str, consumers: int) -> Interest:
        return Interest(InterestKind.ANYCAST, self.vhost.name, address, consumers=consumers)

    def announce(self, address: str, *, is_there: bool) -> None:
        """Tell other containers of an address without receivers, or that it is no more."""
        kind = InterestKind.ANYCAST
        self._mesh.set_interest(Interest(kind, self.vhost.name, address, consumers=int(is_there)))

    # -- what others want

    def is_known(self, container: str) -> bool:
        """Return whether the mesh knows a container."""
        return container in self._mesh.mesh.database.records

    def wanted_at(self, address: str) -> list[str]:
        """List the containers that have receivers of an address which is not multicast."""
        return [name for name, said in self._wanted.at(address).items() if said.consumers]

    def _keeper_of(self, interest: Interest) -> _Keeper | None:
        """Return who takes note of what is said; None where it is of addresses with receivers."""
        if interest.address.startswith(BINDING_PREFIX):
            return self.forwarding
        return self._keepers.get(interest.kind)

    def take_interest(self, container: str, interest: Interest) -> None:
        """Take note of what another container wants."""
        keeper = self._keeper_of(interest)
        if keeper is not None:
            keeper.take_interest(container, interest)
            return
        self.gaps.know(container)
        if topic_of(self.vhost, interest.address) is not None:
            self._branches.take(container, interest.address)
            return
        self._wanted.take(container, interest)
        self._reconcile(interest.address)

    def lose_interest(self, container: str, interest: Interest) -> None:
        """Take note that another container wants something no longer."""
        keeper = self._keeper_of(interest)
        if keeper is not None:
            keeper.lose_interest(container, interest)
            return
        if interest.kind == InterestKind.TOPIC and not self.is_known(container):
            self.gaps.forget(container)
        if self._branches.lose(container, interest.address):
            return
        self._wanted.lose(container, interest)
        self._reconcile(interest.address)

    # -- topics

    def _expand(self, address: str, outlets: list[Terminus]) -> list[Terminus]:
        """Put links of a topic's own address where a publisher's messages may not name it."""
        found = list(outlets)
        for at, outlet in enumerate(found):
            if isinstance(outlet, OutgoingLink) and outlet.is_branch:
                found[at] = self._own_way(_container_of(outlet), address)
        return found

    def _own_way(self, container: str, address: str) -> Terminus:
        """Return the link that a topic's own publishers have to a container."""
        ways = self._ways.setdefault(address, {})
        way = ways.get(container)
        if way is None:
            way = self.open(container, address, None)
            if way is None:
                return self._lost
            ways[container] = way
        return way.end

    # -- addresses

    def entry_added(self, address: str, entry: AddressEntry) -> None:
        """Take note of a new entry."""
        if topic_of(self.vhost, address) is not None:
            entry.expand = partial(self._expand, address)
            self._topic_entries[address] = entry
        node = self.vhost.nodes.get(address)
        if node is not None:
            self.partitions.add(address, node)
            self.owners.changed(address)
            self.homes.changed(address)
            self.disks.changed(address)

    def entry_dropped(self, address: str) -> None:
        """End the links of an address that nobody uses here any more."""
        self.homes.changed(address)
        if self._topic_entries.pop(address, None) is None:
            self.gaps.take_back_all(address)
        self._used.pop(address, None)
        self._gone.discard(address)
        for way in list(self._ways.pop(address, {}).values()):
            way.detach()

    def use(self, address: str, entry: AddressEntry) -> None:
        """Take note that somebody here sends to an address."""
        if address in self._used or address in self._topic_entries:
            return
        self._used[address] = entry
        self._reconcile(address)

    def is_wanted(self, address: str) -> bool:
        """Return whether other containers have consumers of an address."""
        return address in self._wanted

    def _containers_for(self, address: str) -> set[str]:
        if address.startswith(REPLY_PREFIX):
            container = self.reply_routes.container_for(address)
            return set() if container is None or address in self._gone else {container}
        return set(self._wanted.at(address))

    def _reconcile(self, address: str) -> None:
        """Give an address that is used here the links that it should have, and no others."""
        entry = self._used.get(address)
        if entry is None:
            return
        wanted = self._containers_for(address)
        ways = self._ways.setdefault(address, {})
        for container in ways.keys() - wanted:
            self._part(ways.pop(container), entry)
        for container, way in ways.items():
            way.end.cost = self._mesh.cost_to(container)
        for outlet in (self._lost, *self.gaps.take_back_all(address)):
            entry.remove_outlet(outlet)
        lost = {each for each in wanted - ways.keys() if not self._extend(each, address, entry)}
        if entry.distribution != MULTICAST_CODE:
            entry.reconsider()
            return
        for container in lost & self._given_up:
            entry.add_outlet(self.gaps.give_up(container, address))
        if lost - self._given_up:
            entry.add_outlet(self._lost)

    def _part(self, way: Away, entry: AddressEntry) -> None:
        """Send nothing more to a container of an address that it does not want any more."""
        way.entry = None
        way.end.feeder = None  # what it has room for is not the address's any more
        entry.remove_outlet(way.end)
        self.leave(way)

    def leave(self, way: Away) -> None:
        """End a link that nothing goes on any more, once all that went on it is answered."""
        self._leaving.append(way)
        self._end_left()

    def _end_left(self) -> None:
        leaving, self._leaving = self._leaving, []
        for way in leaving:
            if way.end.unsettled or way.end.queue_count:
                self._leaving.append(way)
            else:
                way.detach()

    def _extend(self, container: str, address: str, entry: AddressEntry) -> bool:
        way = self.open(container, address, entry)
        if way is None:
            return False
        way.end.cost = self._mesh.cost_to(container)
        self._ways[address][container] = way
        entry.add_outlet(way.end)
        return True

    # -- links

    def open(
        self,
        container: str,
        address: str | None,
        entry: AddressEntry | None,
        opener: Opener | None = None,
        said: Mapping[Symbol, object] = NOTHING,
    ) -> Away | None:
        """Attach a link to another container; None where there is no way.

        Args:
            container: Where it leads.
            address: What its target names; None for the null target.
            entry: Whose outlet it is; None for a topic's.
            opener: Who hears of its end; None for the reach itself.
            said: Further properties of its attach.
        """
        session = self._mesh.tunnels.to(container)
        if session is None:
            self._mesh.restoration.later()
            return None
        self._count += 1
        name = f"{self._mesh.id}/{self.vhost.name}/{self._count}"
        link = session.open_link(name, Role.SENDER)
        end = OutgoingLink(session.end, link.handle)
        end.is_branch = True
        end.backlog_bytes_max = BACKLOG_BYTES_MAX
        way = Away(opener or self, container, address, end, entry)
        properties: dict[Symbol, object] = {VHOST: self.vhost.name, **said}
        report = self.gaps.report(container) if opener is None else None
        if report is not None:
            properties[MISSED] = report.said
            way.on_attached = partial(self.gaps.told, container, report)
            self.gaps.telling.add(container)
        way.link = link
        link.context = way
        link.carry(end)
        link.attach(source=Source(), target=Target(address=address), properties=properties)
        return way

    def stopping(self, way: Away) -> None:
        """Take a link that is about to end out of use; what should be there is opened again."""
        if way in self._leaving:
            self._leaving.remove(way)
        self._branches.stopping(way)
        ways = self._ways.get(way.address or "", {})
        if ways.get(way.container) is way:
            del ways[way.container]
            if way.address in self._topic_entries:
                self._expand_again(way.address)
        if way.entry is not None:
            way.entry.remove_outlet(way.end)
            self._reserve(way, way.entry)
        if way.on_attached is not None:
            self.gaps.telling.discard(way.container)
        self.open_later()

    def open_later(self) -> None:
        """Have what was lost opened again, as far as there is a way by then."""
        self._mesh.restoration.later()

    def _reserve(self, way: Away, entry: AddressEntry) -> None:
        """Have a way's loss told from now on, until it is known whether there is another."""
        address = way.address or ""
        is_wanted = address in self._used and way.container in self._wanted.at(address)
        if is_wanted and entry.distribution == MULTICAST_CODE and self._lost not in entry.outlets:
            entry.add_outlet(self._lost)

    def refused(self, way: Away, error: AmqpError) -> None:
        """Take note that an address is not there: one for replies never comes back."""
        address = way.address
        is_reply = address is not None and address.startswith(REPLY_PREFIX)
        if address in self._used and is_reply and error.condition == Condition.NOT_FOUND:
            self._gone.add(address)

    def restore(self) -> None:
        """Open what should be open and is not."""
        self._branches.restore()
        for address in list(self._used):
            self._reconcile(address)
        for address in list(self._topic_entries):
            self._expand_again(address)
        for container in self.gaps.untold():
            self._tell(container)
        self.queue_federation.restore()
        self.partitions.restore()
        self.owners.restore()
        self.homes.restore()
        self.forwarding.restore()

    def _tell(self, container: str) -> None:
        """Open a link for nothing but to tell a container what it has missed."""
        way = self.open(container, None, None)
        if way is None or way.on_attached is None:
            return
        told = way.on_attached

        def on_attached() -> None:
            told()
            way.detach()

        way.on_attached = on_attached

    def _expand_again(self, address: str) -> None:
        node = topic_of(self.vhost, address)
        if node is not None:
            node.touch()

    def tick(self, now_s: float) -> None:
        """Look at what queues have, and at what they need no more."""
        self.queue_federation.tick(now_s)
        self.partitions.tick()
        self.owners.tick()
        self.homes.tick()
        if self._leaving:
            self._end_left()

    def sweep(self, now_s: float) -> None:
        """Give up containers that have not been reached for long, and ways that nobody uses."""
        given_up = self._mesh.mesh.lost_for(LOST_HOLD_S, now_s)
        self._branches.sweep(given_up)
        self.gaps.sweep()
        self.partitions.sweep()
        self.reply_routes.sweep(now_s)
        self.forwarding.sweep(given_up)
        if given_up != self._given_up:
            self._given_up = given_up
            for address in list(self._used):
                self._reconcile(address)


def _container_of(outlet: OutgoingLink) -> str:
    context: Away = outlet.owner.context
    return context.container
