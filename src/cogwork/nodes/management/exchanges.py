"""What can be done to exchanges: declare, delete, bind, unbind.

The rights are those of RabbitMQ: to declare and delete takes the right to manage the exchange, a
binding the right to receive from its source and to send to its destination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cogwork.nodes.management.permission import demand, demand_right
from cogwork.nodes.management.request import Reply
from cogwork.nodes.management.waiting import finished
from cogwork.plugin.management import BAD_REQUEST, NOT_FOUND, ExchangeOptions, ManagementError
from cogwork.router.exchanges.addresses import exchange_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from cogwork.nodes.management.request import Request
    from cogwork.plugin.management import ContainerView, Requester

    Steps = Generator[bool, None, Reply]

__all__ = ("Exchanges",)


class Exchanges:
    """The operations on exchanges, which are named by their addresses."""

    def __init__(self, container: ContainerView) -> None:
        """Initialize it with the container.

        Args:
            container: Where the exchanges are.
        """
        self._container = container

    def create(self, request: Request, requester: Requester) -> Reply | Steps:
        """Declare an exchange with the options of the body.

        What it does not route is sent on, so that takes the right to send to its alternate.
        """
        name = request.required_name()
        demand(requester, name)
        options = _options(request)
        alternate = options.arguments.get("alternate-exchange")
        if isinstance(alternate, str):
            demand_right(requester, "send", exchange_address(alternate))
        return self._replied(
            self._container.exchanges.declare(name, options, requester),
            lambda is_new: Reply(
                self._container.collections["exchange"].find(name), 201 if is_new else 200
            ),
        )

    def delete(self, request: Request, requester: Requester) -> Reply | Steps:
        """Delete an exchange with its bindings; `if_unused` keeps one that has any."""
        name = request.required_name()
        demand(requester, name)
        if_unused = request.attributes().get("if_unused", False) is True
        return self._replied(
            self._container.exchanges.delete(name, if_unused=if_unused),
            lambda was_there: _deleted(name, was_there=was_there),
        )

    def bind(self, request: Request, requester: Requester) -> Reply | Steps:
        """Bind `destination`, a queue or an exchange, by `key` and `arguments`."""
        source, destination, key, arguments = self._binding(request, requester)
        return self._replied(
            self._container.exchanges.bind(source, destination, key, arguments, requester),
            lambda is_new: Reply({"changed": is_new}, 201 if is_new else 200),
        )

    def unbind(self, request: Request, requester: Requester) -> Reply | Steps:
        """Remove a binding."""
        return self._replied(
            self._container.exchanges.unbind(*self._binding(request, requester)),
            lambda changed: Reply({"changed": changed}),
        )

    def _replied(
        self, done: bool | Awaitable[bool], reply: Callable[[bool], Reply]
    ) -> Reply | Steps:
        """Reply with what came of something, now or once the cluster has done it."""
        return reply(done) if isinstance(done, bool) else self._later(done, reply)

    def _later(self, work: Awaitable[bool], reply: Callable[[bool], Reply]) -> Steps:
        return reply((yield from finished(self._container, work)))

    def _binding(
        self, request: Request, requester: Requester
    ) -> tuple[str, str, str, Mapping[str, object]]:
        name, destination = request.required_name(), request.text("destination")
        demand_right(requester, "receive", name)
        demand_right(requester, "send", destination)
        given = request.attributes()
        key, arguments = given.get("key", ""), given.get("arguments", {})
        if not isinstance(key, str) or not isinstance(arguments, dict):
            raise ManagementError(BAD_REQUEST, "key is a string, and arguments a map")
        return name, destination, key, arguments


def _deleted(name: str, *, was_there: bool) -> Reply:
    """Reply that something is not there any more.

    Raises:
        ManagementError: It was not there before.
    """
    if not was_there:
        raise ManagementError(NOT_FOUND, f"there is no exchange {name!r:.200}")
    return Reply({}, 204)


def _options(request: Request) -> ExchangeOptions:
    """Read what an exchange is to be.

    Raises:
        ManagementError: An option is unknown, or of another type.
    """
    try:
        return msgspec.convert(request.attributes(), ExchangeOptions)
    except msgspec.ValidationError as error:
        raise ManagementError(BAD_REQUEST, f"an exchange cannot be like that: {error}") from error
