"""Streams that are declared while the container runs.

Theory of operation. As with queues: a declared stream has a rule of its own, and to declare it
again with the same options changes nothing. Its engine is opened afterwards; what comes of that the
stream's state tells.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from cogwork.container.rules import stream_options
from cogwork.container.settings import StreamOptions
from cogwork.container.shape import describe, keys_at, type_at
from cogwork.nodes.stream import StreamNode
from cogwork.router.patterns import is_pattern
from cogwork.spi.management import BAD_REQUEST, CONFLICT, ManagementError
from cogwork.spi.node import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.container.virtual_host import VirtualHost
    from cogwork.router.addresses import AddressRule

__all__ = ("StreamDeclarations",)

STREAM = "stream"


class StreamDeclarations:
    """Makes and deletes the streams of one virtual host."""

    def __init__(self, vhost: VirtualHost) -> None:
        """Starts with none.

        Args:
            vhost: Where the streams are.
        """
        self._vhost = vhost

    def stream(self, address: str) -> StreamNode | None:
        """Finds a stream; None where there is none yet."""
        node = self._vhost.nodes.get(address.removeprefix("/"))
        return node if isinstance(node, StreamNode) else None

    def declare(self, address: str, options: Mapping[str, object]) -> bool:
        """Makes a stream; returns False where it was there with these options.

        Args:
            address: Its address.
            options: As in `[[stream]]`.

        Raises:
            ManagementError: An option is wrong, the address is none of a stream, or the stream is
                there with other options.
        """
        wanted = stream_options(_checked(options))
        try:
            name, inherited = self._vhost.rule_of(address)
            if is_pattern(name) or inherited.kind != STREAM or name == inherited.prefix:
                raise ManagementError(
                    BAD_REQUEST, f"{name!r:.200} is no stream's address: stream/NAME is expected"
                )
            if name in self._vhost.nodes:
                self._compare(name, wanted)
                return False
            self._vhost.declare(name, _rule(name, inherited, wanted))
        except Refused as refusal:
            raise ManagementError(BAD_REQUEST, refusal.description) from refusal
        return True

    def _compare(self, name: str, wanted: Mapping[str, object]) -> None:
        """Refuses where the stream that is there has other options.

        Raises:
            ManagementError: It has.
        """
        there = dict(self._vhost.rules_in_use[name].options)
        for key in sorted({*there, *wanted}):
            if there.get(key) != wanted.get(key):
                raise ManagementError(
                    CONFLICT,
                    f"{name!r:.200} is there with {key} = {there.get(key)}, not "
                    f"{wanted.get(key)}: delete it first, or declare it with the options it has",
                )

    async def delete(self, address: str) -> bool:
        """Gives up a stream with all its records; returns whether it was there.

        Raises:
            ManagementError: The stream is in use.
        """
        name = address.removeprefix("/")
        node = self.stream(name)
        if node is None:
            return False
        entry = self._vhost.space.entries.get(name.encode())
        senders = len(entry.sources) if entry is not None else 0
        receivers = cast("int", node.status()["consumers"])
        if senders or receivers:
            raise ManagementError(
                CONFLICT, f"{name!r:.200} is in use by {senders} senders, {receivers} receivers"
            )
        self._vhost.remove_node(name)
        if self._vhost.engines is not None and node.state != "failed":
            stream = name.partition("/")[2] or name
            await self._vhost.engines.delete(node.options.engine, stream)
        return True


def _checked(options: Mapping[str, object]) -> StreamOptions:
    """Checks options as the configuration does.

    Raises:
        ManagementError: One is unknown, or its value is none of its own.
    """
    known = keys_at(StreamOptions, ())
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    for key, value in given.items():
        if key not in known:
            raise ManagementError(
                BAD_REQUEST, f"a stream has no option {key!r:.80}: there are {', '.join(known)}"
            )
        try:
            msgspec.convert({key: value}, StreamOptions)
        except msgspec.ValidationError as error:
            expected = describe(type_at(StreamOptions, (key,)))
            raise ManagementError(
                BAD_REQUEST, f"{key} takes {expected}, not {value!r:.80}"
            ) from error
    return msgspec.convert(given, StreamOptions)


def _rule(name: str, inherited: AddressRule, options: Mapping[str, object]) -> AddressRule:
    return replace(inherited, prefix=None, pattern=name, options=options)
