"""Declares a plan: users and their like by `$management`, the rest as an application would.

Exchanges, queues and bindings go by AMQP 0-9-1, with the arguments that applications declare them
with: whoever declares them again meets what is there, whatever the arguments become inside.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pika
from pika.exceptions import AMQPError

from cogwork.cli.management.manager import Manager
from cogwork.cli.management.reach import reach
from cogwork.cli.migration.basic import parameters_of
from cogwork.cli.migration.definitions import Left
from cogwork.cli.options.tokens import given_token
from cogwork.client import LinkRefused
from cogwork.client.connection.url import parse_url
from cogwork.container.cluster.settings import permission_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cogwork.cli.migration.definitions import Binding, Exchange, Plan, Queue
    from cogwork.client import Client

__all__ = ("declare",)

LOCKED_OUT = (
    "once there is a user, nobody is anonymous, and you are: add one who may manage $management, "
    "and log in as that one"
)

USER, VHOST, PERMISSION = "org.cogwork.user", "org.cogwork.vhost", "org.cogwork.permission"
POLICY = "org.cogwork.policy"


def declare(url: str, plan: Plan) -> list[Left]:
    """Declare what a plan says; what is there already, so, stays.

    Args:
        url: The container.
        plan: The plan.

    Returns:
        What the container refuses, with its words.

    Raises:
        ClientError: The container cannot be reached.
    """

    async def vhosts(client: Client) -> list[Left]:
        return await _Managed(Manager(client)).vhosts(plan)

    async def users(client: Client) -> list[Left]:
        return await _Managed(Manager(client)).users(plan, is_anonymous=is_anonymous)

    is_anonymous = parse_url(url).user is None and given_token() is None
    failures = reach(url, vhosts, force=True)
    for vhost in dict.fromkeys(each.vhost for each in plan.policies):
        failures += reach(_at(url, vhost), partial(_set_policies, plan, vhost), force=True)
    entries: list[Exchange | Queue | Binding] = [*plan.exchanges, *plan.queues, *plan.bindings]
    for vhost in dict.fromkeys(each.vhost for each in entries):
        failures += _Applied(url, plan, vhost).run()
    # Last, as one of them may be who logs in here, and have no password yet.
    return failures + reach(url, users, force=True)


def _at(url: str, vhost: str) -> str:
    """Return the URL of another virtual host of the same container."""
    path = "" if vhost == "/" else f"/{quote(vhost, safe='')}"
    return urlsplit(url)._replace(path=path).geturl()


async def _set_policies(plan: Plan, vhost: str, client: Client) -> list[Left]:
    """Set the policies of one virtual host; return what was refused."""
    failures, manager = [], Manager(client)
    for each in plan.policies:
        if each.vhost != vhost:
            continue
        rule = {"pattern": each.pattern, "apply_to": each.apply_to, "priority": each.priority}
        try:
            await manager.ask("UPDATE", POLICY, each.name, body={**each.definition, **rule})
        except LinkRefused as error:
            failures.append(Left("policy", each.name, str(error)))
    return failures


class _Managed:
    """Declares by `$management`; what is there from an earlier run is taken as it is."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._failures: list[Left] = []

    async def vhosts(self, plan: Plan) -> list[Left]:
        """Declare virtual hosts; return what was refused."""
        for vhost in plan.vhosts:
            await self._create(VHOST, "vhost", vhost, {})
        return self._failures

    async def users(self, plan: Plan, *, is_anonymous: bool) -> list[Left]:
        """Declare users and permissions; return what was refused."""
        if is_anonymous and not (await self._manager.rows(USER, count_max=1))[0]:
            return [Left("user", name, LOCKED_OUT) for name in plan.users]
        for user in plan.users:
            await self._create(USER, "user", user, {})
        for each in plan.permissions:
            body: dict[str, object] = {"user": each.user, "address": each.address}
            body |= {"vhost": each.vhost} if each.vhost else {}
            name = permission_name(body)
            await self._create(PERMISSION, "permission", name, body | {"rights": [*each.rights]})
        return self._failures

    async def _create(self, kind: str, shown: str, name: str, body: dict[str, object]) -> None:
        try:
            await self._manager.ask("CREATE", kind, name, body=body)
        except LinkRefused as error:
            with suppress(LinkRefused):
                await self._manager.get("READ", kind, name)
                return
            self._failures.append(Left(shown, name, str(error)))


class _Applied:
    """Declares what is in one virtual host, one by one; a refusal ends a channel, not the rest."""

    def __init__(self, url: str, plan: Plan, vhost: str) -> None:
        self._url = url
        self._plan = plan
        self._vhost = vhost
        self._failures: list[Left] = []

    def run(self) -> list[Left]:
        """Declare all of it; return what was refused."""
        try:
            self._connection = pika.BlockingConnection(parameters_of(self._url, self._vhost))
        except AMQPError as error:
            reason = f"{error or type(error).__name__}"
            return [Left("vhost", self._vhost, f"nothing in it is declared: {reason}")]
        try:
            self._channel = self._connection.channel()
            self._declare()
        finally:  # it may be another one than at first
            if self._connection.is_open:
                self._connection.close()
        return self._failures

    def _declare(self) -> None:
        def own(entries: list[Any]) -> list[Any]:
            return [each for each in entries if each.vhost == self._vhost]

        for each in own(self._plan.exchanges):
            with self._taking("exchange", each.name):
                self._channel.exchange_declare(
                    each.name,
                    each.type,
                    durable=each.durable,
                    auto_delete=each.auto_delete,
                    internal=each.internal,
                    arguments=each.arguments,
                )
        for each in own(self._plan.queues):
            with self._taking("queue", each.name):
                self._channel.queue_declare(
                    each.name,
                    durable=each.durable,
                    auto_delete=each.auto_delete,
                    arguments=each.arguments,
                )
        for each in own(self._plan.bindings):
            with self._taking("binding", each.name):
                names = (each.destination, each.source, each.routing_key, each.arguments)
                is_queue = each.destination_type == "queue"
                bind: Callable[..., object] = (
                    self._channel.queue_bind if is_queue else self._channel.exchange_bind
                )
                bind(*names)

    @contextmanager
    def _taking(self, kind: str, name: str) -> Iterator[None]:
        try:
            yield
        except (AMQPError, ValueError, AssertionError) as error:
            # By pika's tuple of code and text, or by what its encoder says of a value.
            args = error.args
            text = str(args[1]) if len(args) > 1 else str(error) or type(error).__name__
            self._failures.append(Left(kind, name, text))
            if not self._connection.is_open:
                self._connection = pika.BlockingConnection(parameters_of(self._url, self._vhost))
            if not self._channel.is_open:
                self._channel = self._connection.channel()
