"""What a bridge is to do: routes by the command line, or by a file."""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import click
import msgspec
from msgspec import Meta

from cogwork.cli.bridge.amqp import AmqpSource, AmqpTarget
from cogwork.cli.bridge.route import Route
from cogwork.cli.options.passwords import with_passwords
from cogwork.client.errors import InvalidUrlError
from cogwork.config.secrets import BadVariable, with_variables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cogwork.cli.bridge.contract import Source, Target
    from cogwork.client.connection.url import Endpoint

__all__ = ("Place", "Way", "check", "read_plan", "route_of", "way_of")

SCHEMES = {"rabbitmq": "amqp", "rabbitmqs": "amqps"}
"""By AMQP 0-9-1, without and with TLS; every other scheme is AMQP 1.0."""

PREFETCH = 500

Prefetch = Annotated[int, Meta(ge=1, le=65_535)]


@dataclass(frozen=True, slots=True)
class Place:
    """A queue of a broker.

    Attributes:
        endpoint: The broker.
        is_basic: Whether it speaks AMQP 0-9-1.
        queue: The queue, or the address.
    """

    endpoint: Endpoint
    is_basic: bool
    queue: str

    def __str__(self) -> str:
        """Show it without a password."""
        shown = str(self.endpoint)
        if self.is_basic:
            shown = shown.replace("amqp", "rabbitmq", 1)
        return f"{shown}#{self.queue}"


@dataclass(frozen=True, slots=True)
class Way:
    """From which queue to which.

    Attributes:
        source: Where messages are taken.
        target: Where they go.
        prefetch: Messages that may be taken and not confirmed.
    """

    source: Place
    target: Place
    prefetch: int = PREFETCH


class _Entry(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    """`[[route]]` of a file."""

    source: str
    target: str
    queue: str
    to_queue: str | None = None
    prefetch: Prefetch = PREFETCH


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The file."""

    route: list[_Entry]


def way_of(source: str, target: str, queues: str, prefetch: int = PREFETCH) -> Way:
    """Return a way between two brokers.

    Args:
        source: The URL where messages are taken.
        target: The URL where they go.
        queues: `NAME`, or `NAME=NAME` where the queue is called otherwise there.
        prefetch: Messages that may be taken and not confirmed.

    Raises:
        InvalidUrlError: A URL is none, or names several brokers.
        click.UsageError: A name is empty.
    """
    name, equals, there = queues.partition("=")
    if not name or (equals and not there):
        raise click.UsageError(f"{queues!r} is no queue (expected NAME or NAME=NAME)")
    return Way(_place(source, name), _place(target, there or name), prefetch)


def _place(url: str, queue: str) -> Place:
    scheme, mark, rest = url.partition("://")
    is_basic = scheme in SCHEMES
    endpoints = with_passwords(f"{SCHEMES[scheme]}{mark}{rest}" if is_basic else url)
    if len(endpoints) != 1:
        raise InvalidUrlError("a bridge takes one URL for each side, not several")
    if is_basic and len(queue.encode()) > 255:
        raise click.UsageError(f"{queue[:40]!r}… is too long for a queue of AMQP 0-9-1")
    return Place(endpoints[0], is_basic, queue)


def read_plan(path: Path) -> list[Way]:
    """Read a file of routes; `${NAME}` stands for environment variables.

    Raises:
        click.UsageError: It is wrong; the text says where, and what was expected.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = msgspec.convert(document, _File).route
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(f"{path}: {text}") from error
    ways = []
    for number, entry in enumerate(entries):
        try:
            ends = [with_variables(url, os.environ) for url in (entry.source, entry.target)]
        except BadVariable as error:
            raise click.UsageError(f"{path}: route[{number}]: {error}") from error
        queues = entry.queue if entry.to_queue is None else f"{entry.queue}={entry.to_queue}"
        ways.append(replace(way_of(ends[0], ends[1], queues), prefetch=entry.prefetch))
    return ways


def check(ways: Iterable[Way]) -> None:
    """Refuse ways that come back to where they began, or twice from one queue to another.

    Raises:
        click.UsageError: They do.
    """
    onward: dict[str, list[str]] = {}
    for way in ways:
        source, target = str(way.source), str(way.target)
        if target in onward.setdefault(source, []):
            raise click.UsageError(f"{source} to {target} is there twice")
        onward[source].append(target)
    for start, nexts in onward.items():
        seen, left = set[str](), list(nexts)
        while left:
            here = left.pop()
            if here == start:
                raise click.UsageError(f"routes from {start} come back to it: they form a circle")
            if here not in seen:
                seen.add(here)
                left += onward.get(here, [])


def route_of(way: Way, idle_s: float | None) -> Route:
    """Make the route of a way.

    Args:
        way: From where to where.
        idle_s: After which time without a message it ends; None for never.
    """
    title = f"{way.source} to {way.target}"
    name = hashlib.sha256(title.encode()).hexdigest()[:12]
    return Route(name, title, partial(_source, way), partial(_target, way), idle_s)


def _source(way: Way) -> Source:
    place = way.source
    if place.is_basic:
        from cogwork.cli.bridge.basic import BasicSource  # noqa: PLC0415  # needs pika

        return BasicSource(place.endpoint, place.queue, way.prefetch)
    return AmqpSource(place.endpoint, place.queue, way.prefetch)


def _target(way: Way) -> Target:
    place = way.target
    if place.is_basic:
        from cogwork.cli.bridge.basic import BasicTarget  # noqa: PLC0415  # needs pika

        return BasicTarget(place.endpoint, place.queue)
    return AmqpTarget(place.endpoint, place.queue)
