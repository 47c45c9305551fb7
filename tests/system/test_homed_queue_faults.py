"""Queues with a home while that is killed, stopped or cut off, and others publish and consume."""

from __future__ import annotations

import collections
import os
import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, NackError

from .basic_clients import basic_channel, basic_connection
from .cables import BOTH, Cables
from .meshes import linked, meshed
from .served import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from .meshes import Member

CONFIGURATION = '[[queue]]\naddress = "queue/q"\nhome = "a"\n'
PERSISTENT = pika.BasicProperties(delivery_mode=2)
COUNT = int(os.environ.get("COGWORK_HOMED_ITEMS", "1500"))
PATIENCE_S = 60


@contextmanager
def members(
    folder: Path, lay: Callable[[str, str, int], int] | None = None
) -> Iterator[dict[str, Member]]:
    with meshed(
        folder,
        "abc",
        ["ab", "bc", "ca"],
        CONFIGURATION,
        head=lambda name: f'data_dir = "{folder / name}"\n',
        lay=lay,
    ) as found:
        linked(found.values())
        yield found


class Publishing(threading.Thread):
    """Publishes numbers with confirms, each once, at one container.

    Attributes:
        confirmed: Those that were.
        refused: Those that were not.
    """

    def __init__(self, member: Member, count: int) -> None:
        super().__init__()
        self._member = member
        self._count = count
        self.confirmed: set[int] = set()
        self.refused: set[int] = set()

    def run(self) -> None:
        with basic_channel(self._member.served, heartbeat=0) as channel:
            channel.confirm_delivery()
            for number in range(self._count):
                try:
                    channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
                    self.confirmed.add(number)
                except NackError:
                    self.refused.add(number)


def drained(member: Member) -> list[int]:
    """Take all that is in the queue, at one container."""
    with basic_channel(member.served) as channel:
        found = [
            int(body)
            for method, _, body in _until_empty(channel)
            if method is not None and not method.redelivered
        ]
        assert channel.queue_declare("q", passive=True).method.message_count == 0
        return found


def _until_empty(
    channel: BlockingChannel,
) -> Iterator[tuple[pika.spec.Basic.Deliver | None, object, bytes]]:
    for method, properties, body in channel.consume("q", auto_ack=True, inactivity_timeout=2):
        if method is None:
            return
        yield method, properties, body


def test_a_killed_home_loses_and_repeats_nothing_that_is_published_elsewhere(
    tmp_path: Path,
) -> None:
    with members(tmp_path) as found:
        publishing = [Publishing(found[name], COUNT) for name in "b"]
        for each in publishing:
            each.start()
        kills = 0
        while any(each.is_alive() for each in publishing):
            time.sleep(0.4)
            found["a"].kill()
            kills += 1
            found["a"].start()
            within(PATIENCE_S, found["a"].listens, "the home listens")
        for each in publishing:
            each.join()
        within(PATIENCE_S, lambda: found["c"].reaches({"a"}), "the home is reached")
        taken = collections.Counter(drained(found["c"]))
        assert kills > 1
        assert [each.refused for each in publishing] == [set()]
        assert publishing[0].confirmed - taken.keys() == set(), "lost"
        assert [number for number, count in taken.items() if count > 1] == [], "twice"


@pytest.mark.parametrize("manner", ["cut", "half-open"])
def test_broken_links_lose_and_repeat_nothing(tmp_path: Path, manner: str) -> None:
    """The publisher's container reaches the home by another way, or by the same one again."""
    with ExitStack() as stack:
        cables = stack.enter_context(Cables())
        found = stack.enter_context(members(tmp_path, cables.lay))
        publishing = Publishing(found["b"], COUNT)
        publishing.start()
        breaks = 0
        while publishing.is_alive():
            time.sleep(0.3)
            for cable in cables.between("a", "b"):
                if manner == "cut":
                    cable.cut(BOTH, is_reset=True)
                else:
                    cable.stall(BOTH, (breaks % 2 == 0,))
            breaks += 1
            if manner == "half-open":
                time.sleep(2.0)
                cables.heal()
        cables.heal()
        publishing.join()
        taken = drained(found["c"])
        assert breaks > 1
        assert publishing.refused == set()
        assert sorted(taken) == list(range(COUNT))
        assert taken == sorted(taken), "in order"


def test_a_home_that_stands_still_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    with members(tmp_path) as found, basic_connection(found["b"].served) as connection:
        channel = connection.channel()
        cancelled: list[object] = []
        channel.add_on_cancel_callback(cancelled.append)
        channel.basic_consume("q", lambda *_: None, auto_ack=True)
        publishing = Publishing(found["c"], 1)
        found["a"].signal(signal.SIGSTOP)
        begun_s = time.monotonic()
        try:
            publishing.start()
            connection.process_data_events(0.1)
            while not cancelled and time.monotonic() - begun_s < PATIENCE_S:
                connection.process_data_events(0.2)
            assert cancelled, "consumers are told"
            attempts: list[Callable[[BlockingChannel], object]] = [
                lambda it: it.queue_declare("q", passive=True),
                lambda it: it.basic_get("q"),
                lambda it: it.basic_consume("q", lambda *_: None),
            ]
            for refused in attempts:
                with pytest.raises(ChannelClosedByBroker, match="down or inaccessible") as why:
                    refused(connection.channel())
                assert why.value.reply_code == 404
            publishing.join(PATIENCE_S)
            assert publishing.refused == {0}
            assert time.monotonic() - begun_s > 10
            assert "queue 'queue/q': container a, its home, has been away" in found["c"].log()
        finally:
            found["a"].signal(signal.SIGCONT)
        again = connection.channel()

        def is_back() -> bool:
            try:
                with basic_channel(found["c"].served) as trying:
                    trying.confirm_delivery()
                    trying.basic_publish("", "q", b"back", PERSISTENT)
                return True
            except NackError:
                return False

        within(PATIENCE_S, is_back, "the home takes messages again")
        within(
            PATIENCE_S,
            lambda: again.basic_get("q", auto_ack=True)[2] == b"back",
            "and gives them",
        )
