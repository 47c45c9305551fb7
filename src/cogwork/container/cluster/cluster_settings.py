"""What holds in a container: the users, limits and more of its file, and the cluster's.

Theory of operation. Whenever the cluster's change, or the file is read again, both are merged and
taken over at once, as a reload does it: logins that hold no longer end, links that are not allowed
any more are detached.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from msgspec import structs

from cogwork.cluster.declarations import (
    LIMIT,
    PERMISSION,
    POLICY,
    ROOT,
    ROOT_NAME,
    USER,
    VHOST,
    Apply,
)
from cogwork.config.limits import UserLimits
from cogwork.container.cluster.declared_limits import (
    declared_limits,
    declared_user_limits,
    problem_of_limit,
)
from cogwork.container.cluster.document import EntryRefused, entries_of, steps_between
from cogwork.container.cluster.kept_declarations import KeptDeclarations
from cogwork.container.cluster.roots import demand_enabled, disabled_roots, with_root
from cogwork.container.cluster.settings import (
    DeclaredPolicy,
    declared_policies,
    merged,
    permission_name,
    with_policies,
    with_vhosts,
)
from cogwork.container.connections.shares import own_limit_name
from cogwork.container.vhost.policies import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cogwork.cluster.declarations import Value
    from cogwork.config.settings import Configuration, Permission, Policy, User
    from cogwork.container.cluster.document import DocumentEntry, Step
    from cogwork.container.cluster.replication import Replication
    from cogwork.plugin.management import Row

__all__ = ("ClusterSettings",)

SHADOWED = "the cluster's user of this name has no effect here"

log = logging.getLogger("cogwork")


class ClusterSettings:
    """Owned by the container."""

    def __init__(
        self,
        replication: Replication,
        configuration: Callable[[], Configuration],
        take: Callable[[Configuration], None],
    ) -> None:
        """Follow what the cluster has set.

        Args:
            replication: Has the cluster.
            configuration: Returns the container's own.
            take: Has what is merged hold.
        """
        self._replication = replication
        self._configuration = configuration
        self._take = take
        self._told: set[str] = set()
        self._is_due = False
        directory = configuration().data_dir
        self._vhosts = KeptDeclarations(directory, "vhosts.json", str)
        self._policies = KeptDeclarations(directory, "policies.json", DeclaredPolicy)
        replication.cluster.on_set = self._take_soon

    def _take_soon(self) -> None:
        """Take over what changes in one turn at once."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._take_now)

    def _take_now(self) -> None:
        self._is_due = False
        self._take(self.merge(self._configuration()))

    def merge(self, configuration: Configuration) -> Configuration:
        """Return a configuration with what the cluster has declared, too."""
        declarations = self._replication.cluster.declarations
        found = merged(configuration, declarations)
        clashes = set(found.clashes)
        for name in sorted(clashes - self._told):
            log.warning(
                "user %.80r is in this container's configuration and in the cluster's "
                "declarations: here, the configuration's holds",
                name,
            )
        self._told = clashes
        if self.are_known:
            self._vhosts.keep([each.name for each in declarations.all(VHOST)])
            self._policies.keep(declared_policies(declarations))
        whole = with_vhosts(found.configuration, self._vhosts.values)
        return with_policies(whole, self._policies.values)

    @property
    def are_known(self) -> bool:
        """Whether all that the cluster has declared is known here, or there is no cluster."""
        return not self._replication.is_in_use or self._replication.cluster.is_current

    # -- changing them

    async def set(
        self,
        kind: str,
        name: str,
        options: Mapping[str, object],
        *,
        is_new: bool,
        vhost: str = "",
    ) -> None:
        """Declare something for all containers, or change it.

        Args:
            kind: What it is.
            name: Its name.
            options: What it is to have; for one that is there, what it has stays otherwise. Those
                of a policy are all that it has.
            is_new: Whether it must not be there yet; else it must be, unless it is a limit or a
                policy.
            vhost: A policy's virtual host.

        Raises:
            ValueError: It cannot be; the text says why.
            ConsensusError: It is not known whether it is, or it is not.
        """
        self._demand_cluster()
        cluster = self._replication.cluster
        there = cluster.declarations.find(kind, vhost, name)
        if kind == VHOST and is_new and self._is_own_vhost(name):
            raise ValueError(f"virtual host {name!r:.200} is in this container's configuration")
        problem = problem_of_limit(name, options.get("value")) if kind == LIMIT else ""
        policies = _policies_of(self._configuration(), vhost) if kind == POLICY else ()
        if any(each.name == name for each in policies):
            problem = f"policy {name!r:.200} is in this container's configuration: change it there"
        if problem:
            raise ValueError(problem)
        # A limit is always there: its file's. A policy is set as a whole.
        if is_new or (there is None and kind in (LIMIT, POLICY)):
            before = None
        elif there is None:
            own = any(kind == USER and each.name == name for each in self._configuration().users)
            hint = ": it is in this container's configuration, so change it there" if own else ""
            raise ValueError(f"the cluster has no {kind} {name!r:.200}{hint}")
        else:
            before = there.options
        options = {**(before or {}), **options} if kind != POLICY else options
        wanted = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in options.items()
            if value is not None
        }
        await cluster.set(kind, vhost, name, cast("dict[str, Value]", wanted), before)

    async def set_root(self, container: str, *, is_enabled: bool, allows_none: bool) -> None:
        """Declare whether a container may become the root.

        Args:
            container: Which one.
            is_enabled: Whether it may.
            allows_none: Whether it is so even if nobody who answers may, then.

        Raises:
            ValueError: It is so already, or nobody who answers could be the root.
            ConsensusError: It is not known whether it is, or it is not.
        """
        self._demand_cluster()
        cluster = self._replication.cluster
        await cluster.know_all()
        found = cluster.declarations.find(ROOT, "", ROOT_NAME)
        options = with_root(
            disabled_roots(cluster.declarations),
            container,
            is_enabled=is_enabled,
            allows_none=allows_none,
        )
        if not options:
            await cluster.delete(ROOT, "", ROOT_NAME)
            return
        if not is_enabled:
            await self._demand_enabled(options)
        before = None if found is None else found.options
        await cluster.set(ROOT, "", ROOT_NAME, options, before)

    async def _demand_enabled(self, options: Mapping[str, Value]) -> None:
        """See that a primary that answers may still become the root.

        Raises:
            ValueError: None may.
        """
        live = await self._replication.roll_call.live()
        demand_enabled(options, self._replication.cluster.voters, live)

    def entries(self) -> list[DocumentEntry]:
        """List what the cluster has for all containers.

        Raises:
            ValueError: This container is in no cluster.
        """
        self._demand_cluster()
        return entries_of(self._replication.cluster.declarations)

    async def apply(
        self, wanted: Sequence[DocumentEntry], *, is_pruning: bool, is_dry: bool
    ) -> list[Step]:
        """Have the cluster have other entries, all of them or none; return what changes.

        Args:
            wanted: Those that it is to have.
            is_pruning: Whether what is not wanted goes, but for streams and queues.
            is_dry: Whether nothing is done.

        Raises:
            EntryRefused: One entry cannot be; nothing is done.
            ValueError: This container is in no cluster.
            ConsensusError: It is not known whether it is done, or it is not.
        """
        self._demand_cluster()
        cluster = self._replication.cluster
        await cluster.know_all()
        steps = steps_between(cluster.declarations, wanted, is_pruning=is_pruning)
        await self._demand_roots(steps)
        if is_dry:
            self._demand_valid(steps)
        elif steps:
            outcome = await cluster.apply([step.command for step in steps])
            if outcome.failed is not None:
                raise EntryRefused(steps[outcome.failed].entry.key, outcome.problem)
            if outcome.problem:
                raise ValueError(outcome.problem)
        return steps

    async def _demand_roots(self, steps: Sequence[Step]) -> None:
        """See that the steps leave somebody who may become the root.

        Raises:
            EntryRefused: One does not.
        """
        for step in steps:
            if step.entry.kind == ROOT and not step.is_removed:
                try:
                    await self._demand_enabled(step.entry.options)
                except ValueError as error:
                    raise EntryRefused(step.entry.key, str(error)) from error

    def _demand_valid(self, steps: Sequence[Step]) -> None:
        """See that the steps could be done, by a copy of what is declared.

        Raises:
            EntryRefused: One cannot.
            ValueError: None can.
        """
        cluster = self._replication.cluster
        outcome = cluster.copied().apply(Apply([step.command for step in steps]))
        if outcome.failed is not None:
            raise EntryRefused(steps[outcome.failed].entry.key, outcome.problem)
        if outcome.problem:
            raise ValueError(outcome.problem)

    async def remove(self, kind: str, name: str, vhost: str = "") -> bool:
        """Take something back, in all containers; return whether it was there.

        Args:
            kind: What it is.
            name: Its name.
            vhost: A policy's virtual host.

        Raises:
            ValueError: This container is in no cluster, or it may not be taken back.
            ConsensusError: It is there still, or that is not known.
        """
        self._demand_cluster()
        return await self._replication.cluster.delete(kind, vhost, name)

    def _is_own_vhost(self, name: str) -> bool:
        return any(each.name == name for each in self._configuration().vhosts)

    def _demand_cluster(self) -> None:
        if not self._replication.is_in_use:
            raise ValueError(
                "this container keeps no declarations: give it a data directory (data_dir, or "
                "--data DIR) or [cluster] primaries, or put it into its configuration"
            )

    # -- looking at them

    def users(self) -> Iterator[Row]:
        """Yield the users that hold here, by name."""
        declarations = self._replication.cluster.declarations
        own = {each.name for each in self._configuration().users}
        found = merged(self._configuration(), declarations)
        for user in sorted(found.configuration.users, key=lambda each: each.name):
            yield {
                "name": user.name,
                "origin": "file" if user.name in own else "cluster",
                "login": _login_of(user),
                "groups": list(user.groups),
                "mesh": user.mesh,
                "problem": SHADOWED if user.name in found.clashes else None,
            }

    def permissions(self) -> Iterator[Row]:
        """Yield the permissions that hold here: the file's, then the cluster's."""
        configuration = self._configuration()
        for whom, entries in (("user", configuration.users), ("group", configuration.groups)):
            for entry in entries:
                for permission in entry.permissions:
                    yield _row(whom, entry.name, permission, is_denied=False)
                for permission in entry.deny:
                    yield _row(whom, entry.name, permission, is_denied=True)
        for each in self._replication.cluster.declarations.all(PERMISSION):
            yield {
                "name": each.name,
                "origin": "cluster",
                "user": each.options.get("user"),
                "group": each.options.get("group"),
                "vhost": each.options.get("vhost"),
                "address": each.options["address"],
                "rights": each.options["rights"],
                "deny": bool(each.options.get("deny")),
            }

    def vhosts(self) -> Iterator[str]:
        """Yield the virtual hosts that hold here besides the default one, by name."""
        yield from sorted(each.name for each in self.merge(self._configuration()).vhosts)

    def policies(self, vhost: str) -> Iterator[Row]:
        """Yield the policies of a virtual host, those first that go before others."""
        merged = self.merge(self._configuration())
        own = {each.name for each in _policies_of(self._configuration(), vhost)}
        for each in in_order(_policies_of(merged, vhost)):
            yield {
                "name": each.name,
                "vhost": vhost,
                "origin": "file" if each.name in own else "cluster",
                "pattern": each.pattern,
                "apply_to": each.apply_to,
                "priority": each.priority,
                "definition": dict(each.definition),
            }

    def limits(self) -> Iterator[Row]:
        """Yield the limits that hold here, in the order of the configuration's reference."""
        declared = declared_limits(self._replication.cluster.declarations)
        own = structs.asdict(self._configuration().limits)
        for name, configured in own.items():
            yield {
                "name": name,
                "origin": "cluster" if name in declared else "file",
                "value": declared.get(name, configured),
                "configured": configured,
            }
        yield from self._user_limits()

    def _user_limits(self) -> Iterator[Row]:
        """Yield the limits of single users."""
        declared = declared_user_limits(self._replication.cluster.declarations)
        own = {each.name: each.limits for each in self._configuration().users}
        for user in self.merge(self._configuration()).users:
            file = own.get(user.name)
            for key in UserLimits.__struct_fields__:
                value = getattr(user.limits, key, None)
                if value is not None:
                    yield {
                        "name": own_limit_name(user.name, key),
                        "origin": "cluster" if key in declared.get(user.name, ()) else "file",
                        "value": value,
                        "configured": getattr(file, key, None),
                    }

    def origin_of_vhost(self, name: str) -> str:
        """Return where a virtual host was declared: `file` or `cluster`."""
        return "file" if self._is_own_vhost(name) else "cluster"


def _policies_of(configuration: Configuration, vhost: str) -> list[Policy]:
    """List the policies that a configuration has in a virtual host."""
    if not vhost:
        return configuration.policies
    return next((each.policies for each in configuration.vhosts if each.name == vhost), [])


def _row(whom: str, name: str, permission: Permission, *, is_denied: bool) -> Row:
    told = {whom: name, "vhost": permission.vhost, "address": permission.address, "deny": is_denied}
    return {
        "name": permission_name(told),
        "origin": "file",
        "user": told.get("user"),
        "group": told.get("group"),
        "vhost": permission.vhost,
        "address": permission.address,
        "rights": list(permission.rights),
        "deny": is_denied,
    }


def _login_of(user: User) -> str:
    """Return by what a user can log in; never the secret."""
    if user.scram_verifiers:
        return "scram"
    if user.password_hash is None:
        return "token" if user.tokens else "certificate"
    return user.password_hash.partition("$")[0]
