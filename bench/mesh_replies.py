"""What ten thousand reply addresses at one container cost the control connections: nothing."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import cogwork
from cogwork.amqp.performatives import Flow, Transfer
from cogwork.bench.peer import WINDOW, Link, Peer, dial
from cogwork.bench.url import Url

if TYPE_CHECKING:
    from fleet import Fleet

__all__ = ("CONTROL", "reply_addresses")

CONTROL: Final = "control bytes for each, above hellos"

_LINKS: Final = 100
"""Addresses of one connection."""


def reply_addresses(fleet: Fleet, count: int) -> tuple[float, list[str]]:
    """Make reply addresses at a, sends a reply to each from b, and give them up again.

    Returns:
        The bytes that the control connections carried for each, above what they carry in peace
        for as long, and what was wrong.
    """
    started_s, before = time.monotonic(), _control_bytes(fleet)
    clients = [_attach(fleet, at) for at in range(count // _LINKS)]
    addresses = [link.address for _, links in clients for link in links]
    asyncio.run(_reply(fleet, addresses))
    lost = sum(_count_lost(peer, links) for peer, links in clients)
    for peer, _ in clients:
        peer.close()
    time.sleep(1.0)
    spent_s, spent = time.monotonic() - started_s, _control_bytes(fleet) - before
    started_s, before = time.monotonic(), _control_bytes(fleet)
    time.sleep(spent_s)
    peace_s, peace = time.monotonic() - started_s, _control_bytes(fleet) - before
    each = (spent - peace * spent_s / peace_s) / count
    return abs(each), [f"{lost} replies did not come"] if lost else []


def _control_bytes(fleet: Fleet) -> int:
    rows = fleet["b"].ask("QUERY", "org.cogwork.link")
    return sum(row["control_bytes_in"] + row["control_bytes_out"] for row in rows)


def _attach(fleet: Fleet, number: int) -> tuple[Peer, list[Link]]:
    peer = dial(Url.parse(fleet["a"].url), f"caller-{number}")
    links = [peer.attach_dynamic() for _ in range(_LINKS)]
    flows = [
        Flow(
            next_incoming_id=0,
            incoming_window=WINDOW,
            next_outgoing_id=0,
            outgoing_window=WINDOW,
            handle=link.handle,
            delivery_count=link.delivery_count,
            link_credit=1,
        )
        for link in links
    ]
    peer.send(flows)
    return peer, links


async def _reply(fleet: Fleet, addresses: list[str]) -> None:
    async with cogwork.connect(fleet["b"].url, force=True) as client, client.publisher() as out:
        messages = [cogwork.Message(b"reply", to=address) for address in addresses]
        await out.send_batch(messages, settled=True)


def _count_lost(peer: Peer, links: list[Link]) -> int:
    """Return how many links did not get exactly one reply."""
    waiting = {link.peer_handle for link in links}
    for _ in links:
        waiting.discard(peer.expect(Transfer).handle)
    return len(waiting)
