"""Asks containers for what is checked; one that cannot be asked is a finding, too."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cogwork.cli.doctor.containers import (
    Examined,
    check_container,
    check_links,
    check_members,
    check_stores,
)
from cogwork.cli.doctor.finding import failed
from cogwork.cli.exit_codes import line_of
from cogwork.cli.management.group import met
from cogwork.cli.management.manager import Manager
from cogwork.cli.options.passwords import hide
from cogwork.client import LinkRefused
from cogwork.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogwork.cli.doctor.finding import Finding
    from cogwork.client import Client

__all__ = ("examine_all",)

STORE_ATTRIBUTES = ("address", "problem")


def examine_all(urls: tuple[str, ...]) -> list[Finding]:
    """Check the containers at some URLs, all workers of each."""
    return asyncio.run(_all(urls))


async def _all(urls: tuple[str, ...]) -> list[Finding]:
    found = await asyncio.gather(*map(_one, urls))
    # The members of one cluster find the same of it.
    return list(dict.fromkeys(finding for findings in found for finding in findings))


async def _one(url: str) -> list[Finding]:
    try:
        async with met(url) as workers:
            examined = await asyncio.gather(*map(_examine, workers.values()))
    except (ClientError, TimeoutError, OSError) as error:
        return [
            failed(
                "connection",
                hide(url),
                line_of(error),
                "clients cannot use it either, or this user may not manage it",
                "see that it runs, that host and port are right and no firewall is between; the "
                "user needs the right to manage $management",
            )
        ]
    return [finding for each in examined for finding in _check(each)]


def _check(examined: Examined) -> Iterator[Finding]:
    yield from check_container(examined)
    yield from check_members(examined)
    yield from check_links(examined)
    yield from check_stores(examined)


async def _examine(client: Client) -> Examined:
    manager = Manager(client)
    began_s = time.time()
    container = await manager.get("READ", "container")
    middle_s = (began_s + time.time()) / 2
    try:
        members = await manager.get("STATUS", "org.cogwork.mesh")
    except LinkRefused:  # there is no cluster
        members = None
    return Examined(
        container,
        _offset_s(container, middle_s),
        (await manager.rows("org.cogwork.link"))[0],
        (await manager.rows("queue", STORE_ATTRIBUTES))[0],
        (await manager.rows("stream", STORE_ATTRIBUTES))[0],
        members,
    )


def _offset_s(container: dict[str, Any], here_s: float) -> float:
    """Return how far a container's clock is ahead; older versions do not tell it."""
    now = container.get("now")
    return 0.0 if now is None else datetime.fromisoformat(now).timestamp() - here_s
