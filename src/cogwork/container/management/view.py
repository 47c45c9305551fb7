"""What `$management` gets of its container for one virtual host: `plugin.management.ContainerView`.

Theory of operation. A virtual host's management node sees its own addresses, queues and nodes, and
its own connections, sessions and links. The default virtual host's is the operator's: it sees the
connections of all of them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.performatives import Role
from cogwork.cluster.declarations import POLICY
from cogwork.config.engine_checks import demand_installed
from cogwork.container.cluster.document import DocumentEntry, EntryRefused
from cogwork.container.cluster.known import demand_known
from cogwork.container.cluster.raft import KIND as STREAM
from cogwork.container.connections.clients import who_is
from cogwork.container.connections.requester import ClientRequester
from cogwork.container.federation.questions import PURGE, OwnerAway, peek_at_owner
from cogwork.container.federation.transfers import move_at_owner
from cogwork.container.management.exchanges import ManagedExchanges
from cogwork.container.management.inventory import collections_of
from cogwork.container.mesh import view as mesh_view
from cogwork.container.vhost.attachments import Attachment
from cogwork.container.vhost.declarations import Declarations
from cogwork.container.vhost.engines import RAFT
from cogwork.container.vhost.reported import Reported
from cogwork.container.vhost.stream_declarations import StreamDeclarations, demand_topics
from cogwork.dataplane.transport.incoming import IncomingLink
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.plugin.capabilities import Bindable, replica_of
from cogwork.plugin.engine.errors import Unavailable
from cogwork.plugin.management import (
    BAD_REQUEST,
    CONSUMER,
    FORBIDDEN,
    NOT_FOUND,
    UNAUTHORIZED,
    ManagementError,
)
from cogwork.plugin.node import Refused
from cogwork.router.exchanges.errors import ExchangeError
from cogwork.router.own_addresses import missing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.container import Container
    from cogwork.container.federation.questions import Questions
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.connection import Connection
    from cogwork.dataplane.link import Link
    from cogwork.dataplane.terminus import Terminus
    from cogwork.plugin.management import (
        Collection,
        ManagedBackups,
        ManagedQueue,
        ManagedStream,
        OnOutcome,
        OnPut,
        Report,
        Requester,
    )
    from cogwork.plugin.mesh import MeshView

__all__ = ("View",)

T = TypeVar("T")


class View:
    """The container, as the management node of one virtual host sees it.

    Attributes:
        collections: The entities by type.
        mesh: The other containers.
        exchanges: The exchanges, and what can be done to them.
        on_done: Called when something that was begun has come to its end.
    """

    def __init__(self, container: Container, vhost: VirtualHost) -> None:
        """Make a view.

        Args:
            container: What is looked at.
            vhost: Whose `$management` it is for.
        """
        self.on_done: Callable[[], object] = _do_nothing
        self._container = container
        self._vhost = vhost
        self.mesh: MeshView = mesh_view.View(container)
        self._declarations = Declarations(vhost)
        self._streams = StreamDeclarations(vhost)
        self.exchanges = ManagedExchanges(vhost, _makers)
        self._reported = Reported(vhost.name, lambda: container.core.now)
        self.collections: Mapping[str, Collection] = {
            **collections_of(container, vhost),
            CONSUMER: self._reported.rows,
        }

    @property
    def backups(self) -> ManagedBackups:
        """The backup of the data directory that is under way, and what can be done to it."""
        return self._container.backups

    def requester(self, source: Terminus | None) -> ClientRequester | None:
        """Find whose request came by a link; None where the link has gone."""
        if not isinstance(source, IncomingLink) or source.detached:
            return None
        return ClientRequester(cast("Connection", source.session.wire.owner))

    @property
    def takes_tokens(self) -> bool:
        """Whether anybody logs in by a token here."""
        return self._container.takes_tokens

    def put_token(self, requester: Requester, token: str, on_put: OnPut) -> None:
        """Have a token hold from now on for the connection of who has asked."""
        assert isinstance(requester, ClientRequester)
        self._container.token_renewals.put(requester.connection, token, on_put)

    def note_request(
        self, requester: Requester, what: Mapping[str, str], *, refusal: str | None
    ) -> None:
        """Have the security log tell of a request."""
        assert isinstance(requester, ClientRequester)
        fields = {**who_is(requester.connection), **what, "vhost": self._vhost.name}
        security = self._container.security
        if refusal is None:
            security.event("management", **fields)
        else:
            security.event("management_refused", **fields, reason=refusal)

    def soon(self, step: Callable[[], None]) -> None:
        """Call `step` in the event loop's next turn."""
        asyncio.get_running_loop().call_soon(self._run, step)

    def _run(self, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:  # logged; the container goes on
            self._container.on_node_fault(None, error)
        self._container.core.flush()

    # -- connections and links

    def close_connection(self, name: str, reason: str) -> bool:
        """Close a connection, once the reply is on its way; return whether it was there."""
        connection = self._container.peers.connection_named(name)
        if connection is None or connection.is_over:
            return False
        if not self._sees(self._container.peers.client_of(connection).vhost):
            return False
        error = AmqpError(condition=Condition.CONNECTION_FORCED, description=reason)
        self.soon(lambda: connection.close(error))
        return True

    def disconnect_user(self, name: str, reason: str) -> int:
        """Close all connections of a user, once the reply is on its way; return how many."""
        peers = self._container.peers
        found = [
            each
            for each in peers.connections
            if each.identity == name
            and not each.is_over
            and self._sees(peers.client_of(each).vhost)
        ]
        error = AmqpError(condition=Condition.CONNECTION_FORCED, description=reason)
        for connection in found:
            self.soon(partial(connection.close, error))
        if self._vhost.name:
            return len(found)
        return len(found) + self._container.mesh.end_unwelcome(
            lambda each: reason if each.identity == name else None
        )

    def detach_link(self, name: str, reason: str) -> bool:
        """Detach a link, once the reply is on its way; return whether it was there."""
        link = self._container.links.get(name)
        if link is None or not self._sees(self._vhost_of(link)):
            return False
        error = AmqpError(condition=Condition.LINK_DETACH_FORCED, description=reason)
        self.soon(lambda: link.detach(error))
        return True

    def _sees(self, vhost: VirtualHost) -> bool:
        return vhost is self._vhost or not self._vhost.name

    def _vhost_of(self, link: Link) -> VirtualHost:
        return self._container.peers.client_of(link.session.connection).vhost

    # -- consumers that are no links

    def note_report(self, report: Report) -> None:
        """Keep what a query elsewhere tells of itself, for a while."""
        self._reported.note(report)

    def forget_report(self, name: str) -> bool:
        """Give it up; return whether it was there."""
        return self._reported.forget(name)

    # -- subscriptions

    def bind(self, requester: Requester, link: str, pattern: str) -> bool:
        """Give a topic subscriber one more pattern; return whether it is new."""
        node, end, subject = self._subscription(requester, link, pattern)
        try:
            return node.bind(end, subject)
        except Refused as refusal:
            raise ManagementError(BAD_REQUEST, refusal.description) from refusal

    def unbind(self, requester: Requester, link: str, pattern: str) -> bool:
        """Take a pattern from a topic subscriber; return whether it had it."""
        node, end, subject = self._subscription(requester, link, pattern)
        return node.unbind(end, subject)

    def _subscription(
        self, requester: Requester, name: str, pattern: str
    ) -> tuple[Bindable, OutgoingLink, bytes]:
        """Find a subscriber and the subject that a pattern means to its topics."""
        assert isinstance(requester, ClientRequester)
        link = self._link_of(requester, name)
        attachment = link.context
        if not isinstance(attachment, Attachment):
            raise ManagementError(NOT_FOUND, f"link {name!r:.200} is not attached to anything")
        node = attachment.node
        if not isinstance(node, Bindable) or not isinstance(link.end, OutgoingLink):
            raise ManagementError(
                BAD_REQUEST, f"link {name!r:.200} is no topic's subscriber: patterns are theirs"
            )
        subject = self._subject(node, pattern)
        if not requester.may("receive", pattern):
            status = UNAUTHORIZED if requester.identity is None else FORBIDDEN
            raise ManagementError(status, missing("receive", pattern))
        return node, link.end, subject

    def _subject(self, node: Bindable, pattern: str) -> bytes:
        try:
            address, rule = self._vhost.rule_of(pattern)
        except Refused as refusal:
            raise ManagementError(BAD_REQUEST, refusal.description) from refusal
        subject = node.subject_of(address)
        is_here = self._vhost.nodes.get(rule.prefix or "") is node
        if not is_here or not subject:
            raise ManagementError(
                BAD_REQUEST,
                f"the pattern {pattern!r:.200} is none of the link's topics; as an address with "
                f"wildcards it starts with {node.root.name!r}",
            )
        return subject

    def _link_of(self, requester: ClientRequester, name: str) -> Link:
        """Find a link by its id, or by its name among the requester's own."""
        for session in requester.connection.sessions:
            link = session.link_named(name, Role.SENDER)
            if link is not None:
                return link
        link = self._container.links.get(name)
        if link is None or self._vhost_of(link) is not self._vhost:
            raise ManagementError(
                NOT_FOUND,
                f"there is no link {name!r:.200}: the name of a receiver of this connection, or a "
                "link id from an attach's properties, is expected",
            )
        if link.session.connection is not requester.connection and not requester.may(
            "manage", "$management"
        ):
            status = UNAUTHORIZED if requester.identity is None else FORBIDDEN
            raise ManagementError(status, f"link {name!r:.200} is another connection's")
        return link

    # -- queues

    def queue(self, address: str) -> ManagedQueue | None:
        """Find a queue; None where there is none yet."""
        return self._declarations.queue(address)

    def declare_queue(
        self, address: str, options: Mapping[str, object], requester: Requester | None = None
    ) -> bool:
        """Make a queue; return False where it was there with these options."""
        if not self._declarations.has(address):
            demand_known(self._known_containers(), options)
        return self._declarations.declare(address, options, _makers(requester))

    def delete_queue(self, address: str) -> bool:
        """Give up a queue of this container's; return whether there was one."""
        return self._declarations.delete(address)

    def purge_elsewhere(self, address: str) -> Awaitable[int] | None:
        """Drop what waits in a queue that another container owns; None where none does."""
        questions, name = self._questions_of(address), address.removeprefix("/")
        return None if questions is None else _purge_by(questions, name)

    def peek_elsewhere(
        self, address: str, count: int, offset: int
    ) -> Awaitable[list[dict[str, object]]] | None:
        """Return items of a queue that another container owns; None where none does."""
        questions, name = self._questions_of(address), address.removeprefix("/")
        return None if questions is None else _peek_by(questions, name, count, offset)

    def has_queue(self, address: str) -> bool:
        """Return whether there is a queue, wherever its items are."""
        return self._declarations.has(address)

    def move_elsewhere(
        self, address: str, count: int, target: str | None, requester: Requester
    ) -> Awaitable[Mapping[str, int]] | None:
        """Move items of a queue that another container owns; None where none does."""
        questions, name = self._questions_of(address), address.removeprefix("/")
        if questions is None:
            return None
        may_send = partial(requester.may, "send")
        return _move_by(questions, name, count, target, may_send)

    def _questions_of(self, address: str) -> Questions | None:
        """Return what asks the owner of a queue, if that is another container."""
        replica, reach = (
            replica_of(self._vhost.nodes.get(address.removeprefix("/"))),
            self._vhost.reach,
        )
        if replica is None or replica.epoch is not None or reach is None:
            return None
        return reach.questions

    def withdraw_queue(self, address: str) -> Awaitable[bool]:
        """Have the whole cluster give up a queue; tell whether there was one."""
        name, topology = address.removeprefix("/"), self._vhost.topology
        if topology is not None and topology.queue(name.removeprefix("queue/")) is not None:
            return topology.delete_queue(name.removeprefix("queue/"))
        return self._container.queues.withdraw(self._vhost.name, name)

    def relocate_queue(
        self, address: str, voters: Sequence[str], learners: Sequence[str]
    ) -> Awaitable[None]:
        """Declare that others are to hold a replicated queue; return before they do."""
        self.demand_holders([*voters, *learners])
        return self._declarations.relocate(address, voters, learners)

    # -- streams

    @property
    def knows_declarations(self) -> bool:
        """Whether it is known what the cluster has declared, or there is none."""
        return self._container.mesh.readiness.holds_all()

    def _known_containers(self) -> set[str]:
        container = self._container
        voters = container.replication.cluster.voters
        return {container.id, *voters, *container.mesh.mesh.database.records}

    def demand_holders(self, names: Sequence[str]) -> None:
        """See that containers which are to hold replicas are there, or were."""
        demand_known(self._known_containers(), {"replicas": names})

    async def move_primaries(self, voters: Sequence[str]) -> None:
        """Declare that others are to hold what the cluster has declared; return before they do."""
        replication = self._container.replication
        if not replication.is_in_use:
            raise ValueError("this container is in no cluster")
        await replication.raft.moves.move_primaries(voters)

    async def cluster_status(self) -> dict[str, object]:
        """Ask all members of the cluster how they are."""
        replication = self._container.replication
        if not replication.is_in_use:
            raise ValueError("this container is in no cluster")
        return await replication.roll_call.status()

    async def set_root(self, name: str, *, is_enabled: bool, allows_none: bool) -> None:
        """Declare whether a container may become the root of the cluster."""
        self.demand_holders([name])
        await self._container.cluster_settings.set_root(
            name, is_enabled=is_enabled, allows_none=allows_none
        )

    async def rebalance(self, most: int) -> dict[str, object]:
        """Move some of the clients that this container has beyond its share."""
        return await self._container.rebalancing.move(most)

    async def forget_member(self, name: str) -> None:
        """Have the feature level no longer wait for a container that is gone for good."""
        replication = self._container.replication
        if not replication.is_in_use:
            raise ValueError("this container is in no cluster")
        await replication.levels.forget(name)
        if replication.topology is not None:
            await replication.topology.forget(name)

    def cluster_entries(self) -> list[list[object]]:
        """List what the cluster has for all containers: kind, virtual host, name and options."""
        return [list(each) for each in self._container.cluster_settings.entries()]

    async def apply_entries(
        self, entries: Sequence[Sequence[Any]], *, is_pruning: bool, is_dry: bool
    ) -> list[dict[str, object]]:
        """Have the cluster have other entries, all or none; return what changes."""
        settings = self._container.cluster_settings
        try:
            wanted = [self._resolved(DocumentEntry(*each)) for each in entries]
            steps = await settings.apply(wanted, is_pruning=is_pruning, is_dry=is_dry)
        except EntryRefused as error:
            kind, vhost, name = error.key
            return [{"kind": kind, "vhost": vhost, "name": name, "problem": str(error)}]
        return [
            {
                "kind": step.entry.kind,
                "vhost": step.entry.vhost,
                "name": step.entry.name,
                "before": step.before,
                "after": None if step.is_removed else step.entry.options,
            }
            for step in steps
        ]

    def _resolved(self, entry: DocumentEntry) -> DocumentEntry:
        """Return an entry with the options that it gets by the rules of its address.

        Raises:
            EntryRefused: It cannot be.
        """
        if entry.kind != "queue":
            return entry
        vhosts = self._container.vhosts
        declarations = Declarations(vhosts.get(entry.vhost, vhosts[""]))
        try:
            return entry._replace(options=declarations.options_of(entry.name, entry.options))
        except ManagementError as error:
            raise EntryRefused(entry.key, error.description) from error

    async def set_setting(
        self, kind: str, name: str, options: Mapping[str, object], *, is_new: bool
    ) -> None:
        """Declare something for all containers, or change it."""
        await self._container.cluster_settings.set(
            kind, name, options, is_new=is_new, vhost=self._place_of(kind)
        )

    async def remove_setting(self, kind: str, name: str) -> bool:
        """Take something back, in all containers; tell whether it was there."""
        return await self._container.cluster_settings.remove(kind, name, self._place_of(kind))

    def _place_of(self, kind: str) -> str:
        """Return the virtual host of what is set; all but policies are in none."""
        return self._vhost.name if kind == POLICY else ""

    async def demand_rooms(self, options: Mapping[str, object]) -> None:
        """See that the containers which are to hold something new can do so."""
        demand_known(self._known_containers(), options)
        named, replication = options.get("replicas"), self._container.replication
        names = [each for each in named if isinstance(each, str)] if _is_list(named) else []
        if options.get("engine", RAFT) == RAFT and replication.is_in_use:
            await replication.raft.moves.rooms.demand_all(names)

    async def demand_majority(self) -> None:
        """Wait a while until a majority of the cluster answers, if there is a cluster."""
        replication = self._container.replication
        if replication.is_in_use:
            await replication.cluster.demand_majority()
            await replication.cluster.demand_root()

    def stream(self, address: str) -> ManagedStream | None:
        """Find a stream; None where there is none yet."""
        return self._streams.stream(address)

    def declare_stream(
        self, address: str, options: Mapping[str, object], requester: Requester | None = None
    ) -> bool:
        """Make a stream; return False where it was there with these options."""
        if self.stream(address) is None:
            demand_known(self._known_containers(), options)
            demand_installed(self._container.engines.kinds, options)
            self._streams.demand_alone(address)
            demand_topics(options)
        is_shared = self._container.replication.is_in_use
        home = self._container.id if is_shared else None
        return self._streams.declare(address, options, home, _makers(requester))

    def delete_stream(self, address: str) -> Awaitable[bool]:
        """Give up a stream with its records; tell whether it was there."""
        return self._delete_stream(address.removeprefix("/"))

    async def _delete_stream(self, name: str) -> bool:
        """Delete one that is here, or that the cluster has and this container cannot have."""
        if await self._streams.delete(name):
            await self._unbind(name)
            return True
        kind, _, rest = name.partition("/")
        cluster, vhost = self._container.replication.cluster, self._vhost.name
        if kind != STREAM or cluster.declarations.find(STREAM, vhost, rest) is None:
            return False
        return await cluster.delete(STREAM, vhost, rest)

    async def _unbind(self, address: str) -> None:
        """Remove the bindings of a stream that has gone, which led to no queue of its name."""
        kind, _, name = address.partition("/")
        topology = self._vhost.topology
        if kind == STREAM and topology is not None and not self._vhost.exchanges.leads_to(name):
            with suppress(ExchangeError):  # then they lead nowhere
                await topology.unbind_all(name)

    def abandon_stream(self, address: str) -> None:
        """Let a stream go that was just made and cannot be opened; it may be another's, too."""
        self._streams.abandon(address)

    def begin(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Have something done that takes its time."""
        begun = asyncio.ensure_future(work)
        begun.add_done_callback(self._ended)
        return begun

    def _ended(self, begun: asyncio.Future[T]) -> None:
        if not begun.cancelled():
            begun.exception()  # perhaps nobody waits for it any more
        self._run(self.on_done)

    def send(self, address: str, message: bytes, on_outcome: OnOutcome) -> bool:
        """Send a message from within; False where the address leads nowhere."""
        return self._container.outgoing.send(self._vhost, address, message, on_outcome)


def _makers(requester: Requester | None) -> Makers:
    """Tell for whom something is made that is asked for."""
    return requester.client.makers if isinstance(requester, ClientRequester) else ()


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _do_nothing() -> None:
    """Nobody waits for anything."""


async def _purge_by(questions: Questions, address: str) -> int:
    """Have the owner of a queue drop what waits in it.

    Raises:
        Unavailable: It does not answer.
    """
    try:
        return int((await questions.ask(address, PURGE))["purged"])
    except OwnerAway as away:
        raise Unavailable(str(away)) from away


async def _move_by(
    questions: Questions,
    address: str,
    count: int,
    target: str | None,
    may_send: Callable[[str], bool],
) -> Mapping[str, int]:
    """Have the owner of a queue move items.

    Raises:
        Unavailable: It does not answer.
    """
    try:
        return await move_at_owner(questions, address, count, target, may_send)
    except OwnerAway as away:
        raise Unavailable(str(away)) from away


async def _peek_by(
    questions: Questions, address: str, count: int, offset: int
) -> list[dict[str, object]]:
    """Look at items of a queue at its owner.

    Raises:
        Unavailable: It does not answer.
    """
    try:
        return await peek_at_owner(questions, address, count, offset)
    except OwnerAway as away:
        raise Unavailable(str(away)) from away
