"""Two containers that others link: what is published at one reaches the other once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from pika.exceptions import NackError, UnroutableError

from .basic_clients import basic_channel, taken
from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

PRIMARIES = ("p1", "p2", "p3")
SECONDARIES = ("s1", "s2")
EDGES = [*itertools.combinations(PRIMARIES, 2), *itertools.product(SECONDARIES, PRIMARIES)]

KILLED = ("p1", "p2", "p1", "p3")
MESSAGES = 100
"""Published around each kill."""


def test_confirmed_messages_come_once_while_primaries_are_killed(tmp_path: Path) -> None:
    with meshed(tmp_path, (*PRIMARIES, *SECONDARIES), EDGES) as members:
        linked(members.values())
        with (
            basic_channel(members["s1"].served) as here,
            basic_channel(members["s2"].served) as there,
        ):
            queue = there.queue_declare("", exclusive=True).method.queue
            there.queue_bind(queue, "amq.topic", "n.#")
            here.confirm_delivery()
            within(20, lambda: is_confirmed(here, b"first"), "the other secondary is known")
            confirmed = {b"first"}
            for turn, name in enumerate(KILLED):
                confirmed |= publish_around(here, members[name], turn)
                linked(members.values())
            within(20, lambda: is_confirmed(here, b"last"), "there is a way again")
            bodies = [body for _, _, body in taken(there, queue, 10_000, auto_ack=True)]
        assert len(bodies) == len(set(bodies)), "something came twice"
        assert confirmed | {b"last"} <= set(bodies), "something that was confirmed did not come"
        assert len(confirmed) > MESSAGES


def publish_around(channel: BlockingChannel, member: Member, turn: int) -> set[bytes]:
    """Publish while a container is killed and comes back; return what was confirmed."""
    confirmed: set[bytes] = set()
    for number in range(MESSAGES):
        if number == MESSAGES // 4:
            member.kill()
        if number == MESSAGES // 2:
            member.start()
        body = b"%d/%d" % (turn, number)
        if is_confirmed(channel, body):
            confirmed.add(body)
        channel.connection.sleep(0.01)
    return confirmed


def is_confirmed(channel: BlockingChannel, body: bytes) -> bool:
    try:
        channel.basic_publish("amq.topic", "n.1", body, mandatory=True)
    except (NackError, UnroutableError):
        return False
    return True
