"""Consensus in a container: its storage, the service of replicas, and the cluster, put together."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from cogwork.cluster.topology import Owner
from cogwork.config.errors import ConfigurationError
from cogwork.container.cluster.catch_up import CatchUp
from cogwork.container.cluster.cluster import Cluster
from cogwork.container.cluster.following import Following
from cogwork.container.cluster.identity import Identity
from cogwork.container.cluster.levels import Levels
from cogwork.container.cluster.orbs import ClusteredOrb
from cogwork.container.cluster.raft import FIRST_GROUP as RAFT_GROUP
from cogwork.container.cluster.raft import ClusteredRaft
from cogwork.container.cluster.roll_call import RollCall
from cogwork.container.cluster.settings import check
from cogwork.container.cluster.shared_topology import SharedTopology
from cogwork.container.cluster.sharing import Sharing
from cogwork.container.cluster.storage import Storage
from cogwork.container.cluster.visibility import Visibility
from cogwork.container.journals.records import FIRST_GROUP
from cogwork.container.vhost.engines import ORB, RAFT
from cogwork.replication.service import RaftService, is_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from cogwork.amqp.errors import CogworkError
    from cogwork.cluster.declarations import Declaration
    from cogwork.cluster.levels import NotUnderstood
    from cogwork.config.settings import Configuration
    from cogwork.container.amqp091.peers import BasicPeers
    from cogwork.container.cluster.queue_replicas import QueueReplicas
    from cogwork.container.journals.journals import QueueJournals
    from cogwork.container.mesh.datagrams import Datagrams
    from cogwork.container.mesh.service import MeshService
    from cogwork.container.vhost.attachments import Attachments
    from cogwork.container.vhost.engines import EngineHosts
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.dataplane.core import Core
    from cogwork.log.directory import Directory
    from cogwork.log.errors import LogFailed
    from cogwork.log.record import Record
    from cogwork.plugin.engine.placement import Placement

__all__ = ("Replication",)

HAND_OVER_S = 1.0
"""A container that stops waits so long for others to lead."""

log = logging.getLogger("cogwork")


class ReplicatedContainer(Protocol):
    """What replication needs of a container.

    Attributes:
        configuration: As it was taken over last.
        id: Its name.
        incarnation: Tells its lives apart.
        core: Its data plane.
        vhosts: Its virtual hosts by name.
        mesh: The other containers.
        engines: Keep its streams.
        journals: Keep its queues on disk.
        queues: Its part in replicated queues.
        attachments: Its clients' links.
        basic_peers: Its connections by AMQP 0-9-1.
    """

    configuration: Configuration
    id: str
    incarnation: int
    core: Core
    vhosts: dict[str, VirtualHost]
    mesh: MeshService
    engines: EngineHosts
    journals: QueueJournals
    queues: QueueReplicas
    attachments: Attachments
    basic_peers: BasicPeers

    def fail(self, failure: CogworkError) -> None:
        """Have it stop: it cannot go on."""


class Carrier:
    """Datagrams between containers, as consensus sees them.

    Attributes:
        send: Sends octets, given in parts; returns False where they are dropped at once.
        flush: Has what was sent leave now.
    """

    def __init__(self, core: Core, datagrams: Datagrams) -> None:
        self.send: Callable[..., bool] = datagrams.send
        self.flush = core.flush
        self._send = datagrams.send
        self._refused: set[str] = set()

    def refuse(self, containers: set[str]) -> None:
        """Send nothing more to containers but what finds out which cluster they are in."""
        self._refused = containers
        self.send = self._send_checked if containers else self._send

    def _send_checked(self, to: str, *parts: bytes) -> bool:
        if to in self._refused and not is_identity(memoryview(b"".join(parts))):
            return False
        return self._send(to, *parts)


class Replication:
    """Owned by the container.

    Attributes:
        storage: The data directory at work; None where there is none.
        service: The replicas.
        cluster: What is declared for all containers.
        raft: The engine.
        levels: Has the cluster's feature level rise.
        roll_call: Asks all members how they are.
        topology: Exchanges, queues and bindings of the cluster; None without `[cluster]`.
        is_in_use: Whether there is a data directory, or a cluster to be a part of.
    """

    def __init__(self, container: ReplicatedContainer) -> None:
        """Open the data directory, where there is one.

        Raises:
            ConfigurationError: This container is to vote and has no data directory.
            LogError: The data directory cannot be used.
        """
        configuration = container.configuration
        own = container.id
        voters = configuration.cluster.primaries
        self._cluster_name = configuration.cluster.name
        self.storage: Storage | None = None
        if configuration.data_dir is not None:
            self.storage = Storage(configuration.data_dir, own)
        elif voters is not None and own in voters:
            found = f"{own!r}, which is this container and has no data directory"
            expected = 'data_dir = "DIR" or --data DIR in every container that votes'
            raise ConfigurationError("configuration", 0, "cluster.primaries", found, expected)
        if configuration.cluster.voters is not None:
            log.warning("[cluster] voters is deprecated: use primaries")
        self._journals = container.journals
        self._queues = container.queues
        self._vhosts = container.vhosts
        self.is_in_use = self.storage is not None or voters is not None
        carrier = Carrier(container.core, container.mesh.datagrams)
        storage = self.storage
        self.service = RaftService(
            own,
            container.incarnation,
            carrier,
            wal=None if storage is None else storage.wal,
            queue=None if storage is None else storage.aside,
            directory_of=self._directory_of,
            report=lambda text: log.warning("%s", text),
        )
        self._identity = self._identity_of(own, voters or [own], configuration.data_dir)
        self._identity.on_refused = partial(self._refuse, carrier)
        self.service.tell_identity = self._identity.tell
        if voters is not None or self._identity.is_recovered:
            # What is a cluster of its own for having a directory may be linked with any other.
            own_part = container.mesh.mesh.own
            own_part.cluster = self._identity.uuid
            self._identity.on_known = partial(setattr, own_part, "cluster")
        self.service.has_lost_past = self._has_lost_past
        following = Following(
            container.vhosts, self.service, self._kept, self._placement_of, self._forget_orb
        )
        self._orbs = ClusteredOrb(own, self.service, container.mesh.mesh.life_of, following.renew)
        self._tasks: set[asyncio.Task[None]] = set()
        self.cluster = Cluster(
            list(voters or [own]), self.service, following, self._identity, check
        )
        self._identity.tell_facts = partial(self.cluster.member_facts, container.incarnation)
        self.levels = self._levels_of(container)
        self.roll_call = self._roll_call_of(container)
        self.topology = None if voters is None else self._topology_of(container)
        self._catch_up = CatchUp(self.cluster)
        self.raft = ClusteredRaft(self.cluster, self.service)
        if storage is not None:
            self._heed(storage)
        container.mesh.on_neighbour_down = self.service.lost
        container.mesh.datagrams.take = self.service.receive
        if self.is_in_use:
            container.mesh.readiness.conditions.append(lambda: self.cluster.is_current)
            container.attachments.when_declared = self._catch_up.when_known
            container.engines.add(ORB, self._orbs)
            container.engines.sharing = Sharing(self.cluster)
        container.engines.add(RAFT, self.raft)

    def _heed(self, storage: Storage) -> None:
        """Have the storage tell what is durable, and what it lacks."""
        storage.wal.on_durable = self._durable
        storage.wal.on_pressure = self._press
        storage.on_low = partial(self._journals.low_space.take, storage.wal, self._press)
        storage.on_full = self._take_space
        storage.on_failure = self._take_failure

    def _levels_of(self, container: ReplicatedContainer) -> Levels:
        self.cluster.on_failure = partial(self._take_failure_of_cluster, container.fail)
        routes, identity = container.mesh.mesh.routes, self._identity
        return Levels(self.cluster, self.service, lambda: identity.uuid, lambda: routes.tree.costs)

    def _roll_call_of(self, container: ReplicatedContainer) -> RollCall:
        routes, identity = container.mesh.mesh.routes, self._identity
        return RollCall(
            self.cluster,
            self.service,
            name=self._cluster_name,
            uuid=lambda: identity.uuid,
            linked=lambda: routes.tree.costs,
            gone_since_s=lambda: routes.unreachable_since_s,
        )

    def _topology_of(self, container: ReplicatedContainer) -> SharedTopology:
        routes, mesh = container.mesh.mesh.routes, container.mesh.mesh
        self.service.when_applied = self.cluster.when_applied
        return SharedTopology(
            Owner(container.id, container.incarnation),
            self.cluster,
            self.service,
            Visibility(self.cluster, self.service, lambda: routes.tree.costs),
            replicas=container.queues,
            vhosts=container.vhosts,
            queues_of=container.basic_peers.queues_of,
            life_of=mesh.life_of,
            linked=lambda: routes.tree.costs,
        )

    def _refuse(self, carrier: Carrier, containers: set[str]) -> None:
        self.service.refused = containers
        carrier.refuse(containers)

    def _forget_orb(self, stream: str) -> None:
        task = asyncio.get_running_loop().create_task(self._orbs.delete(stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _directory_of(self, group: int) -> Directory:
        assert self.storage is not None
        return self.storage.directory_of(group)

    def _placement_of(self, declaration: Declaration) -> Placement | None:
        return self.cluster.declarations.placement(declaration)

    def _has_lost_past(self, group: int) -> bool:
        if group < RAFT_GROUP:
            return self._identity.is_joined
        return self._identity.is_older(group - RAFT_GROUP)

    def _kept(self) -> list[int]:
        return [] if self.storage is None else self.storage.groups()

    def cluster_facts(self) -> dict[str, object] | None:
        """Return what is known of the cluster, in plain values; None where there is none."""
        if not self.is_in_use:
            return None
        return {"name": self._cluster_name, **self.cluster.facts()}

    def _replay(self, record: Record) -> None:
        if record.group >= FIRST_GROUP:
            self._journals.replay(record)
        else:
            self.service.replay(record)

    def _durable(self, lsn: int) -> None:
        self.service.durable(lsn)
        self._journals.durable(lsn)

    def _press(self, group: int) -> None:
        if group >= FIRST_GROUP:
            self._journals.press(group)
        else:
            self.service.compaction_scheduler.ask(group)

    def _take_space(self, is_full: bool) -> None:
        self._journals.full(is_full)
        if is_full:
            self.service.step_back()
            self._queues.bar("the disk is full")
        else:
            self._queues.unbar()

    def _take_failure(self, failure: LogFailed) -> None:
        self._journals.failed(failure)
        self.service.step_back()
        self._queues.bar(str(failure))

    def _take_failure_of_cluster(
        self, fail: Callable[[NotUnderstood], None], failure: NotUnderstood
    ) -> None:
        self.service.step_back()
        fail(failure)

    def start(self) -> None:
        """Recover what is on the disk, and follow the cluster.

        Raises:
            LogError: The write-ahead log is damaged.
        """
        if self.storage is not None:
            self.storage.recover(self._replay)
            self.storage.start()
            self._journals.start(
                self.storage.wal, self._vhosts, self.storage.sent_file(), self.storage.pages_path
            )
        if self.is_in_use:
            self._identity.start(self.service)
            self.cluster.start()
            self.levels.start()
            if self.topology is not None:
                self.topology.start()
            self._queues.start(self.cluster, self.service, self.raft.moves)

    async def hand_over(self) -> None:
        """Have others lead before this container stops, as far as they do so soon."""
        await self.service.hand_over(HAND_OVER_S)

    def _identity_of(self, own: str, primaries: list[str], data_dir: str | None) -> Identity:
        """Read which cluster the data directory is of; let go of it where that is not known."""
        is_empty = self.storage is not None and self.storage.was_empty
        try:
            return Identity(own, primaries, data_dir, is_empty=is_empty)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let go of the data directory, where nothing else was begun."""
        if self.storage is not None:
            self.storage.close()

    async def close(self) -> None:
        """Let go of everything."""
        self._queues.close()
        await self._catch_up.close()
        await self.levels.close()
        if self.topology is not None:
            await self.topology.close()
        await self.cluster.close()
        await self._identity.close()
        await self.service.close()
        if self.storage is not None:
            self._journals.close()
            self.storage.close()
