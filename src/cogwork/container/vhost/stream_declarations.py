"""Streams that are declared while the container runs.

Theory of operation. As with queues: a declared stream has a rule of its own, and to declare it
again with the same options changes nothing. Its engine is opened afterwards; what comes of that the
stream's state tells. In a cluster that is also when all others hear of it: who follows the cluster
declares it here by what they said.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import msgspec

from cogwork.config.declared_options import check_options, takes
from cogwork.config.rules import stream_options
from cogwork.config.settings import StreamOptions
from cogwork.container.cluster.orbs import HOME
from cogwork.container.vhost.captures import begin_capture, end_capture
from cogwork.container.vhost.declarations import error_of
from cogwork.container.vhost.engines import CLUSTERED, ORB, RAFT
from cogwork.plugin.capabilities import Capturing, Streaming
from cogwork.plugin.management import BAD_REQUEST, CONFLICT, ManagementError
from cogwork.plugin.node import Refused
from cogwork.plugin.shape import keys_at
from cogwork.plugin.stream_options import name_of
from cogwork.router.patterns import is_pattern, misplaced_wildcard
from cogwork.schema.registry import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.cluster.declarations import Declaration
    from cogwork.container.connections.node_shares import Makers
    from cogwork.container.vhost.virtual_host import VirtualHost
    from cogwork.router.addresses import AddressRule

__all__ = ("StreamDeclarations", "demand_topics")

STREAM = "stream"

_OF_CLUSTER = {HOME, "is_shared"}
"""What is not for whoever declares to say."""

BEGINS_ANEW = "begins anew: the container that had it in memory was started anew"

_NO_ENGINES = {"engine", "capture", *_OF_CLUSTER}
"""What no engine has for an option: given as one it would be overridden without a word."""


class StreamDeclarations:
    """Makes and deletes the streams of one virtual host."""

    def __init__(self, vhost: VirtualHost) -> None:
        """Start with none.

        Args:
            vhost: Where the streams are.
        """
        self._vhost = vhost

    def stream(self, address: str) -> Streaming | None:
        """Find a stream; None where there is none yet."""
        node = self._vhost.nodes.get(address.removeprefix("/"))
        return node if isinstance(node, Streaming) else None

    def demand_alone(self, address: str) -> None:
        """Refuse a new stream that another address here leads to, whose permissions are others.

        What an engine knows a stream by is what stands behind the prefix, whichever that is.

        Raises:
            ManagementError: There is such an address.
        """
        name = name_of(address.removeprefix("/"))
        for node in self._vhost.nodes.values():
            if isinstance(node, Streaming) and node.name == name:
                raise ManagementError(
                    CONFLICT, f"{address!r:.200} would be the stream {node.address!r:.200}"
                )

    def declare(
        self,
        address: str,
        options: Mapping[str, object],
        cluster_of: str | None = None,
        makers: Makers = (),
    ) -> bool:
        """Make a stream; return False where it was there with these options.

        Args:
            address: Its address.
            options: As in `[[stream]]`.
            cluster_of: The container that declares it for a whole cluster; None for itself alone.
            makers: For whom it is made.

        Raises:
            ManagementError: An option is wrong, the address is none of a stream, or the stream is
                there with other options.
        """
        given = check_options("stream", options, StreamOptions)
        _demand_of_engine(given.get("options", {}))
        wanted = stream_options(msgspec.convert(given, StreamOptions))
        if cluster_of is not None and wanted["engine"] not in CLUSTERED:
            wanted["is_shared"] = True
            if wanted["engine"] == ORB:
                wanted[HOME] = cluster_of
        try:
            name, inherited = self._vhost.rule_of(address)
            is_named = name != inherited.prefix and not name.endswith("/")
            if is_pattern(name) or inherited.kind != STREAM or not is_named:
                raise ManagementError(
                    BAD_REQUEST, f"{name!r:.200} is no stream's address: stream/NAME is expected"
                )
            if name in self._vhost.nodes:
                self._compare(name, wanted)
                return False
            self._vhost.declare(name, _rule(name, inherited, wanted), makers)
        except Refused as refusal:
            raise error_of(refusal) from refusal
        return True

    def _compare(self, name: str, wanted: Mapping[str, object]) -> None:
        """Refuse where the stream that is there has other options.

        Raises:
            ManagementError: It has.
        """
        there = dict(self._vhost.nodes.rules[name].options)
        for key in sorted({*there, *wanted} - _OF_CLUSTER):
            if (there.get(key) or None) != (wanted.get(key) or None):
                raise ManagementError(
                    CONFLICT,
                    f"{name!r:.200} is there with {key} = {there.get(key)}, not "
                    f"{wanted.get(key)}: delete it first, or declare it with the options it has",
                )

    def follow(self, declaration: Declaration) -> None:
        """Make a stream that was declared for the whole cluster, unless it is there.

        Raises:
            ManagementError: It cannot be, or another one is there.
        """
        address = f"{STREAM}/{declaration.name}"
        options = dict(declaration.options)
        home = options.pop(HOME, "")
        # An option of the engine may have the name of one of ours: three replicas on NATS, say.
        own = [key for key in keys_at(StreamOptions, ()) if _is_own(key, options)]
        given: dict[str, object] = {key: options.pop(key) for key in own}
        given = {"engine": RAFT, **given, "options": options}
        self._make_way(address, home)
        node = None if self.declare(address, given, str(home)) else self.stream(address)
        if node is not None and not node.options.is_shared and given["engine"] not in CLUSTERED:
            self._share(node)

    def _make_way(self, address: str, home: object) -> None:
        """Give up a stream in this container's memory that is another one's.

        Raises:
            ManagementError: It was never declared for the cluster.
        """
        node = self.stream(address)
        if node is None or node.options.engine != ORB or node.options.rest.get(HOME) == home:
            return
        if not node.options.is_shared:
            raise ManagementError(CONFLICT, f"{address!r:.200} is here, for this container alone")
        # Two containers declared it at once, and the other one was first.
        self.drop(node, "is another container's")

    def _share(self, node: Streaming) -> None:
        """Have a stream that was this container's capture what is published here, and no more."""
        if isinstance(node, Capturing):
            end_capture(self._vhost, node)
        node.options = replace(node.options, is_shared=True)
        if isinstance(node, Capturing):
            begin_capture(self._vhost, node)

    def drop(self, node: Streaming, why: str) -> None:
        """Let a stream go here: with its links, and not with its records."""
        node.end_links(why)
        self._vhost.remove_node(node.address)

    def abandon(self, address: str) -> None:
        """Let a stream go that was just made and cannot be opened: here, and nowhere else."""
        node = self.stream(address)
        if node is not None:
            self.drop(node, "could not be opened")

    def renew(self, address: str, why: str = BEGINS_ANEW) -> None:
        """Open a stream anew: one whose records, or replica here, could not be had any more."""
        node = self.stream(address)
        if node is not None:
            nodes = self._vhost.nodes
            rule, makers = nodes.rules[node.address], nodes.makers_of(node.address)
            self.drop(node, why)
            self._vhost.declare(node.address, rule)
            nodes.count_for(node.address, makers)

    async def delete(self, address: str, *, ends_links: bool = False) -> bool:
        """Give up a stream with all its records; return whether it was there.

        One that the whole cluster has goes here when it goes everywhere.

        Args:
            address: Its address.
            ends_links: Whether links to it are ended; else it stays while there are any.

        Raises:
            ManagementError: The stream is in use.
        """
        name = address.removeprefix("/")
        node = self.stream(name)
        if node is None:
            return False
        if name == SCHEMAS and self._vhost.schemas is not None and self._vhost.schemas.holds_any:
            raise ManagementError(CONFLICT, f"{name!r} has the schemas that messages are held to")
        if not ends_links:
            self._demand_unused(name, node)
        options, engines = node.options, self._vhost.engines
        # Others may have what this container cannot open.
        is_kept = engines is not None and (node.is_everywhere or node.state != "failed")
        if not is_kept or not node.is_everywhere:
            node.end_links()
            self._vhost.remove_node(name)
            self._vhost.exchanges.drop_stream(name)
        if engines is not None and is_kept:
            await engines.delete(options.engine, node.name, is_shared=options.is_shared)
        return True

    def _demand_unused(self, name: str, node: Streaming) -> None:
        """Refuse to delete a stream that links are attached to.

        Raises:
            ManagementError: There are some.
        """
        entry = self._vhost.space.entries.get(name.encode())
        senders = len(entry.sources) if entry is not None else 0
        receivers = cast("int", node.status()["consumers"])
        if senders or receivers:
            raise ManagementError(
                CONFLICT, f"{name!r:.200} is in use by {senders} senders, {receivers} receivers"
            )


def demand_topics(options: Mapping[str, object]) -> None:
    """Refuse to capture what no topic is: a wildcard is a word of its own.

    Raises:
        ManagementError: One of the patterns has it within a word, where it would mean nothing.
    """
    captured = options.get("capture")
    for pattern in captured if isinstance(captured, list | tuple) else ():
        word = misplaced_wildcard(str(pattern))
        if word is not None:
            raise ManagementError(
                BAD_REQUEST,
                f"capture {pattern!r:.200} has the word {word!r:.80}: * and # are wildcards as "
                "whole words only, as in topic/orders.#",
            )


def _demand_of_engine(options: Mapping[str, object]) -> None:
    """Refuse options for the engine that are none of any.

    Raises:
        ManagementError: There is one.
    """
    for key in options:
        if key in _NO_ENGINES:
            raise ManagementError(BAD_REQUEST, f"no engine has an option {key!r}")


def _is_own(key: str, options: Mapping[str, object]) -> bool:
    return key in options and takes(StreamOptions, key, options[key])


def _rule(name: str, inherited: AddressRule, options: Mapping[str, object]) -> AddressRule:
    return replace(inherited, prefix=None, pattern=name, options=options)
