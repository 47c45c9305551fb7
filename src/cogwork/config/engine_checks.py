"""What can be known of engines before one is asked: their names, their options, their disk."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cogwork.config.problems import Problem, each
from cogwork.engines.registry import engines, factory_of
from cogwork.plugin.engine.contract import EngineContext
from cogwork.plugin.engine.retention import RETENTION_OPTIONS, Retention
from cogwork.plugin.management import BAD_REQUEST, ManagementError
from cogwork.plugins import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cogwork.config.settings import (
        Address,
        Configuration,
        Engine,
        Queue,
        Stream,
        Vhost,
    )
    from cogwork.plugin.engine.contract import EngineFactory

__all__ = (
    "check_engine",
    "check_engine_of",
    "demand_installed",
    "find_unloadable_engine",
    "find_without_disk",
    "places_of",
)

RAFT = "raft"

_PORTS = {"http": 80, "https": 443, "nats": 4222, "tls": 4222, "redis": 6379, "rediss": 6379}
"""Those that a URL need not name."""


def check_engine(engine: Engine) -> Iterator[Problem]:
    """Find what is wrong with an `[[engine]]`: its name, or its options."""
    yield from _unknown("name", engine.name)
    factory = _factory_of(engine.name) if engine.options else None
    if factory is not None:
        try:
            factory(EngineContext(engine.options))
        except ValueError as error:
            yield Problem(("options",), str(error), "options that the engine has")


def places_of(engine: Engine) -> Iterator[tuple[str, str, int]]:
    """Yield where an engine is told to dial: the option, a host (or a path), and a port.

    What stands there cannot be read as a place where the host is empty. What servers tell of
    further members is not known here, nor what the options of engines from elsewhere mean.
    """
    option = getattr(_factory_of(engine.name), "url_option", None)
    texts = {option: engine.options.get(option)} if option is not None else {}
    client = engine.options.get("client")
    if isinstance(client, dict):  # librdkafka's own names win over the engine's
        found = (client.get(key) for key in ("bootstrap.servers", "metadata.broker.list"))
        texts["client"] = ",".join(filter(None, map(str, filter(None, found)))) or None
    for name, text in texts.items():
        for url in text.split(",") if isinstance(text, str) else ():
            yield name, *_place_of(url.strip())


def _place_of(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        return parts.hostname or parts.path, parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", 0


def check_engine_of(stream: Stream) -> Iterator[Problem]:
    """Find what is wrong with a stream's engine: its name, or options that it cannot have."""
    yield from _unknown("engine", stream.engine)
    given = {name: ("options", name) for name in stream.options}
    replicas = {} if stream.replicas is None else {"replicas": ("replicas",)}
    more = getattr(_factory_of(stream.engine), "stream_options", None) if given | replicas else None
    if more is None:
        return
    known = (*RETENTION_OPTIONS, *more)
    for name, path in (given | replicas).items():
        if name not in known:
            found = f'an option that the engine "{stream.engine}" does not have'
            yield Problem(path, found, f"one of {', '.join(known)}")
        elif name in RETENTION_OPTIONS:
            yield from _no_retention(path, name, stream.options[name])


def _no_retention(path: tuple[str, ...], name: str, value: object) -> Iterator[Problem]:
    try:
        Retention.of({name: value})
    except ValueError:
        yield Problem(path, repr(value), "a positive number")


def _unknown(key: str, name: str) -> Iterator[Problem]:
    known = engines()
    if ":" not in name and name not in known:
        expected = f'one of {", ".join(known)}, or "package.module:Class"'
        yield Problem((key,), f'"{name:.80}"', expected)


def _factory_of(name: str) -> EngineFactory | None:
    """Return what makes an engine's hosts; None where that cannot be known before the start."""
    with suppress(PluginError):
        return factory_of(name)
    return None


def demand_installed(kinds: Sequence[str], options: Mapping[str, object]) -> None:
    """Refuse a stream whose engine would first have to be loaded by its import path.

    To import a module is to run it: that is for the configuration to ask, and for no peer.

    Args:
        kinds: The engines that are installed, or that the configuration names.
        options: The stream's, as they came.

    Raises:
        ManagementError: The engine is none of those.
    """
    engine = options.get("engine")
    if isinstance(engine, str) and engine not in kinds:
        raise ManagementError(
            BAD_REQUEST, f"there is no engine {engine!r:.80}: there are {', '.join(kinds)}"
        )


def find_without_disk(configuration: Configuration) -> Problem | None:
    """Find the first queue, rule, or stream that needs a disk or a cluster that is not there."""
    has_disk = configuration.data_dir is not None
    has_cluster = has_disk or configuration.cluster.primaries is not None

    def of_queue(queue: Queue | Address) -> Iterator[Problem]:
        if queue.durability == "disk" and not has_disk:
            yield Problem(("durability",), '"disk"', "a data_dir, or --data, with it")
        if queue.durability == "replicated" and not has_cluster:
            expected = "a data_dir, --data, or [cluster] with it"
            yield Problem(("durability",), '"replicated"', expected)

    def of_stream(stream: Stream) -> Iterator[Problem]:
        if stream.engine == RAFT and not has_cluster:
            yield Problem(("engine",), f'"{RAFT}"', "a data_dir, --data, or [cluster] with it")

    def of_vhost(vhost: Configuration | Vhost) -> Iterator[Problem]:
        yield from each("address", vhost.addresses, of_queue)
        yield from each("queue", vhost.queues, of_queue)
        yield from each("stream", vhost.streams, of_stream)

    found = (*of_vhost(configuration), *each("vhost", configuration.vhosts, of_vhost))
    return found[0] if found else None


def find_unloadable_engine(configuration: Configuration) -> Problem | None:
    """Find the first engine that is to be used and cannot be loaded here; None where all can."""

    def of_vhost(vhost: Configuration | Vhost) -> Iterator[Problem]:
        yield from each("stream", vhost.streams, lambda it: _loaded("engine", it.engine))

    found = (
        *each("engine", configuration.engines, lambda it: _loaded("name", it.name)),
        *of_vhost(configuration),
        *each("vhost", configuration.vhosts, of_vhost),
    )
    return found[0] if found else None


def _loaded(key: str, name: str) -> Iterator[Problem]:
    try:
        factory = factory_of(name)
    except PluginError as error:
        found = f'"{name:.80}", which {error.lack:.300}'
        yield Problem((key,), found, "an engine that can be loaded")
    else:
        if not callable(factory):
            found = f'"{name:.80}", which cannot be called'
            yield Problem((key,), found, "a class of hosts of an engine")
