"""The container: a process's listeners, connections, virtual hosts and nodes, wired together.

Theory of operation. Listeners accept sockets and make a `Connection` of each, with the container as
its host: it authenticates peers, answers opens, and has `Attachments` decide over links. From then
on messages move inside the compiled core and nothing here runs, but for a tick ten times a second.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from cogwork import __version__
from cogwork.amqp.errors import AmqpError, Condition
from cogwork.amqp.types import UInt
from cogwork.config.exposure import clear_passwords
from cogwork.container.amqp091.peers import BasicPeers
from cogwork.container.backup.source import BackupSource
from cogwork.container.cluster.cluster_settings import ClusterSettings
from cogwork.container.cluster.departure import Departure
from cogwork.container.cluster.held_clients import HeldClients
from cogwork.container.cluster.queue_replicas import QueueReplicas
from cogwork.container.cluster.replication import Replication
from cogwork.container.connections.balance import Balance
from cogwork.container.connections.listeners import Listeners
from cogwork.container.connections.memory import Memory
from cogwork.container.connections.node_shares import NodeShares
from cogwork.container.connections.peers import Peers
from cogwork.container.connections.queue_memory import QueueMemory
from cogwork.container.connections.room import detach_unfinished, make_room
from cogwork.container.connections.slow_peers import detach_dear, detach_overdue
from cogwork.container.connections.token_renewals import TokenRenewals
from cogwork.container.connections.watermark import Watermark
from cogwork.container.early_ticks import EarlyTicks
from cogwork.container.federation.shards import shard_of
from cogwork.container.gateways.service import Gateways
from cogwork.container.held_publishers import HeldPublishers
from cogwork.container.journals.file_sync import FileSync
from cogwork.container.journals.journals import QueueJournals
from cogwork.container.journals.vhost_journals import VhostJournals
from cogwork.container.leaving import UNDER_WAY_S, Leaving
from cogwork.container.management.view import View
from cogwork.container.mesh.service import MeshService
from cogwork.container.rabbitmq.links import ManagementLinks
from cogwork.container.rebalancing import Rebalancing
from cogwork.container.schemas.service import CheckThreads, Schemas
from cogwork.container.security.access import Access
from cogwork.container.security.log import SecurityLog
from cogwork.container.telemetry.audits import Audits
from cogwork.container.telemetry.heartbeat import Heartbeat
from cogwork.container.vhost.attachments import Attachments
from cogwork.container.vhost.effects import EffectRunner
from cogwork.container.vhost.engines import EngineHosts, VhostEngines
from cogwork.container.vhost.kept_exchanges import ExchangeFile
from cogwork.container.vhost.outgoing import Outgoing
from cogwork.container.vhost.reply_addresses import replies_to
from cogwork.container.vhost.selection import DearSelectorError
from cogwork.container.vhost.virtual_host import VirtualHost
from cogwork.container.vhost.virtual_hosts import VirtualHosts, plans_of
from cogwork.container.workers import OFFERED, siblings
from cogwork.dataplane.core import Core
from cogwork.dataplane.transport.outgoing import OutgoingLink
from cogwork.io.linger import close_lingering
from cogwork.io.places import Places
from cogwork.tls.expiry import EXPIRY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.amqp.errors import CogworkError
    from cogwork.config.amqp091_settings import Amqp091Options
    from cogwork.config.limits import Limits
    from cogwork.config.mesh_settings import Link as LinkSettings
    from cogwork.config.settings import Configuration
    from cogwork.container.connections.shares import OwnLimits, Use
    from cogwork.container.vhost.virtual_hosts import Plan
    from cogwork.container.workers import Worker
    from cogwork.dataplane.link import Link

__all__ = ("Container",)

TICK_S = 0.1
"""How exactly time-outs of nodes and slow subscribers are kept."""

SWEEP_TICKS = 10
"""Connections' time-outs and idle addresses are looked at once a second."""

ANSWERS_S = 1.0
"""So long disks and other containers take, at most, to answer what clients have sent to a
container that stops."""

FAREWELL_S = 0.5
"""So long other containers take, at most, to read what was under way when this one stops."""

log = logging.getLogger("cogwork")


class Container:
    """One container.

    Attributes:
        configuration: As it was taken over last.
        id: Its name.
        security: Its security log.
        incarnation: Tells its lives apart: the start's time in milliseconds.
        started_at: When it was made, by the wall clock.
        core: Its data plane.
        outgoing: Sends messages of its own.
        engines: Keep its streams.
        journals: Keep its queues on disk.
        queues: Its part in replicated queues.
        vhosts: By name; the default one's is empty.
        peers: Their connections.
        basic_peers: The host of those by AMQP 0-9-1.
        watermark: Whether memory is so short that publishers wait.
        attachments: Their links.
        node_shares: Whose its queues and streams are.
        mesh: The other containers.
        cluster_settings: Its users, limits and more, those of the cluster among them.
        replication: Its replicas, and what it knows of the cluster.
        backups: The backup of its data directory that is under way.
        gateways: What lets programs of other protocols in.
        leaving: Its way out of the mesh; None while it stays.
        on_leave: Called when it has left, or has failed, to stop it.
        failure: Why it cannot go on; None while it can.
    """

    def __init__(self, configuration: Configuration, worker: Worker | None = None) -> None:
        """Make a container that does not listen yet.

        Args:
            configuration: Checked.
            worker: Which of several processes it is, with `configuration` its own; None is all.

        Raises:
            CogworkError: A user's hash, an address rule or a node is wrong.
        """
        self.configuration = configuration
        self._limits = configuration.limits
        self._worker = worker
        self.id = configuration.id or socket.gethostname()
        self.incarnation = int(time.time() * 1000)
        self.started_at = time.time()
        self.core = Core(self.on_node_fault)
        self.outgoing = Outgoing(self.core)
        self._virtual_hosts = VirtualHosts(self._make_vhost)
        self.vhosts = self._virtual_hosts.by_name
        self.security = SecurityLog(self.id, configuration.security_log)
        self._access = Access(configuration, self.security)
        prefix = replies_to(self.id, self.incarnation)
        self.node_shares = NodeShares(self.limits)
        self.attachments = Attachments(self.limits, prefix, self.security)
        self.peers = Peers(
            self.core,
            self.id,
            self._access,
            self.attachments,
            vhosts=self.vhosts,
            limits=self.limits,
        )
        self.basic_peers = self._make_basic_peers(prefix)
        self._listeners = Listeners(self.peers)
        self._effects = EffectRunner(self.core, self.outgoing)
        self._memory = Memory()
        self.watermark = Watermark(self._block)
        engines = {each.name: each.options for each in configuration.engines}
        self.engines = EngineHosts(self.id, engines)
        has_disk = configuration.data_dir is not None
        self.journals = QueueJournals(self.core, self.id, has_disk=has_disk)
        self.queues = QueueReplicas(
            self.id,
            self.core,
            self.journals,
            self.vhosts,
            has_cluster=has_disk or configuration.cluster.primaries is not None,
        )
        self._audits = _audits_of(self.id, configuration)
        self._ticks = 0
        self._dear: list[tuple[OutgoingLink, DearSelectorError]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._limit_core()
        self._check_threads = CheckThreads()
        self._exchange_file = ExchangeFile(configuration.data_dir)
        self._virtual_hosts.take(plans_of(configuration))
        self.mesh = self._make_mesh(configuration)
        self.replication = Replication(self)
        self.backups = BackupSource(self.id, self.replication)
        self.cluster_settings = ClusterSettings(
            self.replication, lambda: self.configuration, self._take_declared
        )
        self._held_clients = self._make_held_clients()
        self._access.are_all_known = lambda: self.cluster_settings.are_known
        try:
            self._complete(worker)
        except BaseException:
            self.replication.release()
            raise

    def _complete(self, worker: Worker | None) -> None:
        """Make what needs the data directory to be open, which nobody else can use now."""
        configuration = self.configuration
        self._share_topology()
        self.token_renewals = TokenRenewals(self._access, self.peers, self.attachments)
        self.peers.mesh = self.mesh
        self.mesh.put_token = self.token_renewals.put_for_link
        self._queue_memory = QueueMemory()
        self._held_publishers = HeldPublishers(self.peers, self.attachments, self.basic_peers)
        self._take_limits(configuration)
        secrets = _secrets_directory(configuration, worker)
        if secrets is not None:
            self._access.keep_secrets(secrets)
        if worker is not None:
            self.mesh.siblings = frozenset(siblings(self.id, worker.count))
            self.peers.offer(OFFERED, UInt(worker.count))
        self.gateways = Gateways(self.id, self.peers, self._access, configuration.gateways)
        self.leaving: Leaving | None = None
        self.on_leave: Callable[[], None] = _stay
        self.failure: CogworkError | None = None
        self._balance = Balance(self.mesh, self.peers, self.vhosts, configuration.mesh)
        self.rebalancing = Rebalancing(self._balance, self.attachments, self.core)
        options = configuration.telemetry
        self._heartbeat = None if options is None else Heartbeat(self, options)

    def _share_topology(self, names: list[str] | None = None) -> None:
        """Have virtual hosts know what the cluster has of them: all, where none are named."""
        topology = self.replication.topology
        for name in self.vhosts if names is None else names:
            if topology is not None:
                self.vhosts[name].topology = topology.of(self.vhosts[name])

    def _make_mesh(self, configuration: Configuration) -> MeshService:
        return MeshService(
            self.core,
            self.id,
            self.incarnation,
            self.vhosts,
            configuration.mesh,
            cluster_name=configuration.cluster.name or "",
        )

    @property
    def takes_tokens(self) -> bool:
        """Whether anybody logs in by a token here."""
        return self._access.takes_tokens

    def _make_held_clients(self) -> HeldClients:
        held = HeldClients(self.replication.cluster.find_root, self._block)
        self.attachments.hold = self.basic_peers.hold = held.hold
        return held

    def _make_basic_peers(self, reply_prefix: str) -> BasicPeers:
        peers = BasicPeers(
            self.core,
            self.id,
            self._access,
            self.peers,
            vhosts=self.vhosts,
            options=_basic_options(self.configuration),
            reply_prefix=reply_prefix,
        )
        pairs = ManagementLinks(peers.queues_of, peers.renew_token)
        self.attachments.management_links = pairs
        return peers

    def _block(self, _is_new: bool) -> None:
        """Have clients send nothing while there is a reason, or again."""
        why = ""
        if self.watermark.is_passed:
            why = "low on memory"
        elif self._held_clients.are_held:
            why = "the cluster has no root"
        self.attachments.block(bool(why))
        self.basic_peers.block(bool(why), why)
        # Without a root, what others send is nothing that this container alone would have to hold.
        self.mesh.block(self.watermark.is_passed)

    def _limit_core(self) -> None:
        self.core.held_bytes_max = self.limits.held_bytes
        self.core.congested_at_bytes = self.limits.unsent_bytes
        self.core.on_no_room = self._make_room

    def _make_room(self) -> bool:
        is_made = make_room(self.core, self.peers, self.limits.held_bytes)
        self._memory.give_back()
        return is_made

    def _make_vhost(self, name: str, plan: Plan) -> VirtualHost:
        vhost = VirtualHost(
            self.core,
            name,
            plan.table,
            container_id=self.id,
            shard=shard_of(self.id, self.incarnation),
            run=self._effects.run,
            shares=self.node_shares,
            engines=VhostEngines(self.engines, name),
            journals=VhostJournals(self.journals, self.queues, name),
            audits=self._audits.of(name),
            kept=self._exchange_file.of(name),
        )
        if not name:
            self._audits.begin(vhost)
        vhost.view = View(self, vhost)
        vhost.schemas = Schemas(vhost, plan.tables.schemas, self._check_threads)
        return vhost

    # -- life cycle

    async def start(self) -> None:
        """Recover what is on the disk, then listen; where that fails nothing stays open.

        Raises:
            ListenError: A port or a path is taken.
            LogError: The write-ahead log is damaged.
            SecurityLogError: Nothing can be written where the security log is to be.
            TlsFilesError: A certificate cannot be used.
        """
        try:
            self._start()
        except BaseException:
            await self.stop(drain_timeout_s=0.0)
            raise

    def _start(self) -> None:
        self.security.open(self.vhosts[""])
        self.security.event("started", version=__version__)
        # Queues on disk are in them, and are opened next.
        merged = self.cluster_settings.merge(self.configuration)
        self._take_declared_vhosts(merged)
        self._take_policies(merged)
        self.replication.start()
        if self.configuration.cluster.hold_clients:
            self._held_clients.start()
        self._exchange_file.open(FileSync(self.core, self.journals.barriers))
        self.basic_peers.join_records = self.journals.write_together
        self._virtual_hosts.start_schemas()
        listeners = self.configuration.listeners
        if self._worker is None:
            self._listeners.open(listeners)
        else:
            self._listeners.open(listeners, is_shared=True, held=self._worker.held)
            self._listeners.open_for_links(self._worker.socket)
        for text in clear_passwords(self.configuration):
            log.warning("%s", text)
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._early_ticks = EarlyTicks(self.core, self._pass_time)
        self._early_ticks.begin(TICK_S)
        self.core.on_unscanned = self._go_on_soon
        self.mesh.diallers.allow(_places_of(self.configuration))
        self.mesh.start(self.configuration.links)
        self._balance.advertise(tuple(self.advertised))
        self.gateways.start(self.mesh.readiness)

    def reconfigure(self, configuration: Configuration) -> list[str]:
        """Take over what a running container can; the rest stays as it was.

        Args:
            configuration: Checked.

        Returns:
            What is wrong with certificates and with gateways' keys; those in use before stay.

        Raises:
            CogworkError: Users or address rules are wrong; then nothing has changed.
        """
        old = self.configuration
        links = configuration.links
        self.gateways.check(configuration.gateways, configuration.users)
        configuration = structs.replace(
            configuration,
            id=old.id,
            data_dir=old.data_dir,
            nodes=old.nodes,
            engines=old.engines,
            links=_renewed(old.links, links),
            mesh=structs.replace(old.mesh, redirect_margin=configuration.mesh.redirect_margin),
            cluster=old.cluster,
            workers=old.workers,
            telemetry=old.telemetry,
            audits=old.audits,
            security_log=old.security_log,
            arrow=old.arrow,
            gateways=old.gateways,
        )
        merged = self.cluster_settings.merge(configuration)
        plans = plans_of(merged)
        revoked = self._access.replace(merged)
        listeners, problems = self._listeners.replaced(configuration.listeners)
        self.basic_peers.options = _basic_options(configuration)
        self._permit_anew(revoked)
        problems += self.mesh.diallers.renew(links)
        self.mesh.diallers.allow(_places_of(configuration))
        problems += self.gateways.reload()
        self.configuration = structs.replace(configuration, listeners=listeners)
        for text in clear_passwords(self.configuration):
            log.warning("%s", text)
        self._take_limits(merged)
        self._balance.set_margin(configuration.mesh.redirect_margin)
        self._balance.advertise(tuple(self.advertised))
        self._take_vhosts(plans)
        return problems

    def _take_users(self, configuration: Configuration) -> None:
        """Have users and permissions hold from now on, and end what they do not allow any more."""
        self._permit_anew(self._access.replace(configuration))

    def _permit_anew(self, revoked: Mapping[str, str]) -> None:
        self.peers.permit_anew(revoked)
        self.basic_peers.permit_anew()

    def _take_limits(self, configuration: Configuration) -> None:
        self._limits = limits = configuration.limits
        self._own_limits = own = _own_limits(configuration)
        self.attachments.limit(limits, own)
        self.peers.limit(limits, own)
        self.node_shares.limit(limits, own)
        self.journals.paging.memory_bytes = limits.queue_memory_bytes
        self._limit_core()

    def uses(self) -> dict[str, Use]:
        """Return who has most of what is limited, by the limit."""
        found = (*self.peers.uses(), *self.attachments.dynamic.uses(), *self.node_shares.uses())
        return {each.key: each for each in found}

    def _take_declared(self, configuration: Configuration) -> None:
        """Have what the cluster has set hold from now on, and what it has taken back no longer."""
        self._take_users(configuration)
        if (configuration.limits, _own_limits(configuration)) != (self._limits, self._own_limits):
            self._take_limits(configuration)
        fresh = self._take_declared_vhosts(configuration)
        self._take_policies(configuration)
        if fresh:
            self._virtual_hosts.start_schemas()
            self.replication.cluster.tell_again(fresh)
        self.core.flush()

    def _take_policies(self, configuration: Configuration) -> None:
        self.vhosts[""].policies.take(configuration.policies)
        for each in configuration.vhosts:
            self.vhosts[each.name].policies.take(each.policies)

    def _take_declared_vhosts(self, configuration: Configuration) -> list[str]:
        """Make the virtual hosts of the cluster that are new, and end those that are gone.

        Returns:
            The names of the new ones.
        """
        wanted = {vhost.name for vhost in configuration.vhosts} | {""}
        for name in self.vhosts.keys() - wanted:
            self._end_vhost(name)
        if wanted == self.vhosts.keys():
            return []
        return self._add_vhosts(plans_of(configuration))

    def _add_vhosts(self, plans: Mapping[str, Plan]) -> list[str]:
        """Make the virtual hosts that are new, for linked containers, too; return their names."""
        fresh = self._virtual_hosts.take(plans)
        self._share_topology(fresh)
        for name in fresh:
            self.mesh.add_vhost(self.vhosts[name])
            log.info("virtual host %r was added", name)
        return fresh

    def _end_vhost(self, name: str) -> None:
        """Give up a virtual host with all that is in it, and close the connections of clients."""
        log.warning("virtual host %r was removed, with all that was in it", name)
        text = f"virtual host {name!r:.200} was removed"
        error = AmqpError(condition=Condition.RESOURCE_DELETED, description=text)
        self.peers.close_those_in(self.vhosts[name], error)
        self._virtual_hosts.end(name)
        self.mesh.remove_vhost(name)

    def _take_vhosts(self, plans: Mapping[str, Plan]) -> None:
        if self._add_vhosts(plans):
            self._virtual_hosts.start_schemas()

    @property
    def descriptors(self) -> dict[str, int]:
        """The limit of file descriptors, how many are kept for files, connections refused."""
        found = self._listeners.descriptors
        return {"limit": found.limit, "reserved": found.reserved, "refused": found.refused}

    @property
    def endpoints(self) -> list[str]:
        """Where it listens, as URLs."""
        return self._listeners.urls

    @property
    def workers(self) -> list[str]:
        """The containers that look like one, this among them, as far as they can be reached.

        There are none where this one is no worker.
        """
        routes = self.mesh.mesh.routes
        return sorted(filter(routes.is_reachable, self.mesh.siblings), key=_number_of)

    @property
    def has_left(self) -> bool:
        """Whether it has left the mesh for good."""
        return self.leaving is not None and self.leaving.phase == "done"

    @property
    def advertised(self) -> list[str]:
        """Where clients elsewhere reach it, as URLs: what other containers redirect them to."""
        return self._listeners.advertised

    def leave(self) -> None:
        """Send clients, items and replicas to others, says good-bye, and has itself stopped."""
        if self.leaving is None:
            departure = Departure(self.replication, self.mesh)
            self.leaving = Leaving(
                self.mesh,
                self._balance,
                self.vhosts.values(),
                departure,
                data_dir=self.configuration.data_dir,
                on_left=self.on_leave,
            )
            self.leaving.start()

    def fail(self, failure: CogworkError) -> None:
        """Have it stopped, and its process exit with an error."""
        self.failure = failure
        self.on_leave()

    async def stop(self, drain_timeout_s: float | None = None) -> None:
        """Accept no more, lets unsettled deliveries settle, then close every connection.

        Args:
            drain_timeout_s: How long they may take; None for the configured limit.
        """
        self.peers.is_draining = True
        self._balance.drain()
        self._listeners.close()
        self.gateways.drain()
        limit_s = self.limits.drain_timeout_s if drain_timeout_s is None else drain_timeout_s
        under_way_s = min(UNDER_WAY_S, limit_s)
        await self._end_credit(under_way_s, has_all_end=False)
        await _wait_while(lambda: self.mesh.unanswered, min(ANSWERS_S, limit_s))
        await self.replication.hand_over()
        await _wait_while(lambda: self.unsettled or not self.gateways.are_drained, limit_s)
        await self._end_credit(under_way_s, has_all_end=True)
        self.security.event("stopped")
        self._virtual_hosts.give_back()
        await asyncio.sleep(0)  # engines that are awaited answer then
        self.core.flush()
        await _wait_while(lambda: self.attachments.unanswered, min(ANSWERS_S, limit_s))
        self.gateways.close()
        self.peers.close(
            AmqpError(
                condition=Condition.CONNECTION_FORCED,
                description=f"container {self.id} is shutting down",
            )
        )
        self.core.flush()
        await _wait_while(lambda: self.peers.connections, min(1.0, limit_s))
        self.peers.lose()
        self.mesh.stop()
        self.core.flush()
        await _wait_while(lambda: self.mesh.peer_links, FAREWELL_S)
        if self._timer is not None:
            self._timer.cancel()
            self._early_ticks.stop()
        await self._virtual_hosts.close_streams()
        self._check_threads.close()
        await self.engines.close()
        self.backups.close()
        await self._held_clients.close()
        await self.replication.close()
        self._effects.close()
        self._exchange_file.close()
        self.token_renewals.close()
        self._access.close()
        self.security.close()
        close_lingering(asyncio.get_running_loop())  # it may end before their peers do

    async def _end_credit(self, under_way_s: float, *, has_all_end: bool) -> None:
        """Have others send no more, and wait for what was under way."""
        could_send = self.attachments.end_credit(has_all_end=has_all_end), self.mesh.end_credit()
        if any(could_send):
            self.core.flush()
            await asyncio.sleep(under_way_s)

    @property
    def unsettled(self) -> int:
        """Counts the deliveries that were sent to clients and are not settled."""
        return self.peers.unsettled

    @property
    def limits(self) -> Limits:
        """How much it takes on."""
        return self._limits

    @property
    def links(self) -> dict[str, Link]:
        """The links that stand, by link id."""
        return self.attachments.links

    # -- time

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.core.tick()
        now_s = self.core.now
        self._early_ticks.begin(TICK_S)
        self._pass_time()
        self._effects.tick(now_s)
        self.core.expire_held()
        detach_overdue(self.core)
        users = self.peers.users_by_origin
        self._queue_memory.look(self._virtual_hosts, self.limits, self._own_limits, users)
        self._held_publishers.hold(self._queue_memory.over)
        self._detach_dear()
        self.peers.beat(now_s)
        self.basic_peers.tick(now_s)
        self._audits.tick()
        self.gateways.tick(now_s)
        if self._heartbeat is not None:
            self._heartbeat.tick(now_s)
        self._ticks += 1
        if self._ticks % SWEEP_TICKS == 0:
            self._sweep(now_s)
        self.core.flush()

    def _pass_time(self) -> None:
        """Let time pass at all nodes."""
        for vhost in self._virtual_hosts:
            try:
                self._effects.run(vhost, vhost.nodes.tick(self.core.now))
                self._effects.run(vhost, vhost.temporary.tick(self.core.now))
            except Exception as error:  # a plug-in's fault must not stop the container's clock
                self.on_node_fault(vhost, error)

    def _detach_dear(self) -> None:
        dear, self._dear = self._dear, []
        for end, error in dear:
            detach_dear(end, error)

    def _go_on_soon(self) -> None:
        """Have selectors go on in the next turn of the event loop, after whatever else is due."""
        asyncio.get_running_loop().call_soon(self.core.go_on)

    def _sweep(self, now_s: float) -> None:
        self.peers.sweep(now_s)
        self.watermark.look(self.limits.memory_watermark)
        detach_unfinished(self.core, self.peers, self.limits.delivery_timeout_s)
        self.security.tick(now_s)
        self._balance.tick(now_s)
        self._memory.sweep(self.core.held_bytes)
        self._listeners.look()
        self.mesh.diallers.look()
        EXPIRY.remind()
        self._virtual_hosts.sweep(now_s, self.peers.connections.values())

    def on_node_fault(self, port: object, error: Exception) -> None:
        """Log a fault of a node; all others go on."""
        if isinstance(error, DearSelectorError) and isinstance(port, OutgoingLink):
            self._dear.append((port, error))  # its address goes through its links now
            return
        log.error("a node failed: %s", error, exc_info=error)


def _places_of(configuration: Configuration) -> Places | None:
    """Return where the container may dial; None for everywhere."""
    return None if configuration.dial is None else Places(configuration.dial.allow)


def _basic_options(configuration: Configuration) -> Amqp091Options:
    """Return the options of AMQP 0-9-1, whose clients are told the cluster's name."""
    options = configuration.amqp091
    name = options.cluster_name or configuration.cluster.name
    return structs.replace(options, cluster_name=name)


def _audits_of(container_id: str, configuration: Configuration) -> Audits:
    has_telemetry = configuration.telemetry is not None
    return Audits(container_id, configuration.audits, times_items=has_telemetry)


def _stay() -> None:
    """A container that nobody stops goes on, alone."""


def _number_of(worker: str) -> int:
    return int(worker.rpartition(".")[2])


async def _wait_while(holds: Callable[[], object], limit_s: float) -> None:
    """Wait until something does not hold any more, or for a time."""
    deadline_s = time.monotonic() + limit_s
    while holds() and time.monotonic() < deadline_s:
        await asyncio.sleep(0.01)


def _renewed(old: list[LinkSettings], new: list[LinkSettings]) -> list[LinkSettings]:
    """Return the links that are dialled, with the logins of those that were read again."""
    fresh = {link.target.endpoint: link for link in new}
    return [structs.replace(fresh.get(link.target.endpoint, link), cost=link.cost) for link in old]


def _secrets_directory(configuration: Configuration, worker: Worker | None) -> Path | None:
    """Return where secrets are kept that all workers of a container have in common."""
    if configuration.data_dir is not None:
        own = Path(configuration.data_dir)
        return own if worker is None else own.parent
    return None if worker is None else Path(worker.directory)


def _own_limits(configuration: Configuration) -> OwnLimits:
    """Return the limits of single users, by their names."""
    return {each.name: each.limits for each in configuration.users if each.limits is not None}
