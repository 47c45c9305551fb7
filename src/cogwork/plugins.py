"""Plug-ins: what an entry point names, or an import path `package.module:Name`.

Built-in and foreign ones come through the same door.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

__all__ = ("PLUGIN_FAULTS", "PluginError", "load", "names")

BUILT_IN = {
    "cogwork.nodes": {
        "exchange": "cogwork.nodes.exchange:ExchangeNode",
        "topic": "cogwork.nodes.topic:TopicNode",
        "queue": "cogwork.nodes.queue:QueueNode",
        "stream": "cogwork.nodes.stream:StreamNode",
        "sink": "cogwork.nodes.sink:SinkNode",
        "management": "cogwork.nodes.management:ManagementNode",
        "cbs": "cogwork.nodes.claims:ClaimsNode",
    },
    "cogwork.codecs": {
        "amqp": "cogwork.rpc.codecs.amqp:AmqpCodec",
        "json": "cogwork.rpc.codecs.json:JsonCodec",
        "msgpack": "cogwork.rpc.codecs.msgpack:MsgpackCodec",
        "protobuf": "cogwork.rpc.codecs.protobuf:ProtobufCodec",
    },
    "cogwork.exchanges": {
        "direct": "cogwork.router.exchanges.direct:DirectExchange",
        "fanout": "cogwork.router.exchanges.fanout:FanoutExchange",
        "headers": "cogwork.router.exchanges.headers:HeadersExchange",
        "topic": "cogwork.router.exchanges.topic:TopicExchange",
        "x-consistent-hash": "cogwork.router.exchanges.consistent_hash:ConsistentHashExchange",
        "x-random": "cogwork.router.exchanges.randomly:RandomExchange",
    },
    "cogwork.gateways": {
        "zeromq": "cogwork.gateways.zeromq:ZeromqGateway",
    },
    "cogwork.engines": {
        "raft": "cogwork.replication.outside:RaftOutside",
        "etcd": "cogwork.engines.etcd:EtcdHost",
        "kafka": "cogwork.engines.kafka.host:KafkaHost",
        "nats": "cogwork.engines.nats:NatsHost",
        "orb": "cogwork.engines.orb:OrbHost",
        "redis": "cogwork.engines.redis:RedisHost",
    },
}
"""Our own entry points, the same as in `pyproject.toml`: to read what is installed takes as long as
a tenth of a container's start. Others cannot replace them."""

PLUGIN_FAULTS = (Exception, SystemExit)
"""What the code of somebody else raises is its own fault: to exit is not for it to decide.

Ctrl-C and cancellation are meant for others.
"""


class PluginError(CogworkError):
    """A plug-in that is there but cannot be loaded.

    Attributes:
        lack: Why not, to go on after its name: "cannot be loaded: ...".
    """

    def __init__(self, plugin: str, lack: str) -> None:
        super().__init__(f"{plugin} {lack}")
        self.lack = lack


def load(group: str, name: str, what: str) -> object | None:
    """Return what a plug-in is; None where none of this name is installed.

    Args:
        group: The group of entry points.
        name: An entry point's name, or `package.module:Name`.
        what: What it is to people: "node kind".

    Raises:
        PluginError: It is there but cannot be loaded; a missing extra is named in the text.
    """
    if ":" in name:
        return _load_path(name, what)
    path = BUILT_IN.get(group, {}).get(name)
    if path is not None:
        with suppress(*PLUGIN_FAULTS):  # the entry point tells what it lacks
            return _object_at(path)
    for point in _named(group, name):
        try:
            found: object = point.load()
        except PLUGIN_FAULTS as error:
            raise PluginError(f"{what} {name!r}", _lack_of(point, error)) from error
        return found
    return None


def _lack_of(point: EntryPoint, error: BaseException) -> str:
    """Return what a plug-in lacks; an extra of its name is what it needs."""
    package = point.dist
    extras = package.metadata.get_all("Provides-Extra", ()) if package is not None else ()
    if package is None or not isinstance(error, ModuleNotFoundError) or point.name not in extras:
        return f"cannot be loaded from {point.value}: {_told(error)}"
    return f"needs {error.name}, which is missing: pip install '{package.name}[{point.name}]'"


def _told(error: BaseException) -> str:
    """Return what was raised; of an exit the code alone would say nothing."""
    return repr(error) if isinstance(error, SystemExit) else str(error)


def _load_path(path: str, what: str) -> object:
    try:
        return _object_at(path)
    except PLUGIN_FAULTS as error:
        raise PluginError(f"{what} {path!r}", f"cannot be loaded: {_told(error)}") from error


def _object_at(path: str) -> object:
    module_name, _, attribute = path.partition(":")
    found: object = getattr(importlib.import_module(module_name), attribute)
    return found


def names(group: str) -> list[str]:
    """List the plug-ins of a group that are installed."""
    return sorted({*BUILT_IN.get(group, ()), *(point.name for point in _points(group))})


def _points(group: str) -> EntryPoints:
    from importlib.metadata import entry_points  # noqa: PLC0415  # takes its time

    return entry_points(group=group)


def _named(group: str, name: str) -> EntryPoints:
    """Look among ours first: to look through whatever is installed delays each start."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # as above

    with suppress(PackageNotFoundError):  # in a folder that nobody has installed
        if ours := distribution("cogwork").entry_points.select(group=group, name=name):
            return ours
    return _points(group).select(name=name)
