"""Queues that go by themselves, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hosted import Hosted

from cogwork.container.amqp091.declared_queue import Traits
from cogwork.container.amqp091.queue_arguments import options_of
from cogwork.container.amqp091.queues import BasicQueues

if TYPE_CHECKING:
    from cogwork.container.amqp091.declared_queue import DeclaredQueue

MANY = 3000
EXPIRES_MS = 60_000
TICKS_A_SECOND = 10


class CountingQueues(BasicQueues):
    """Counts how often a queue is looked up.

    Attributes:
        looks: How often.
    """

    looks = 0

    def find(self, name: str) -> DeclaredQueue | None:
        self.looks += 1
        return super().find(name)


class Gone:
    """Stands for a connection.

    Attributes:
        is_over: Whether it has ended.
    """

    is_over = False


def declare(queues: BasicQueues, name: str, traits: Traits) -> DeclaredQueue:
    """Declare a queue as a client does."""
    return queues.declare(name, traits, options_of(traits.arguments, name), ())


def test_each_of_many_has_its_turn_within_a_second_and_few_at_once() -> None:
    hosted = Hosted()
    vhost = hosted.container.vhosts[""]
    queues = CountingQueues(vhost)
    for number in range(MANY):
        declare(queues, f"a-{number}", Traits(False, arguments={"x-expires": EXPIRES_MS}))
    now_s = hosted.core.now
    looks = []
    for _ in range(TICKS_A_SECOND + 1):
        before = queues.looks
        queues.tick(now_s)
        looks.append(queues.looks - before)
    assert sum(looks) == MANY
    assert max(looks) <= MANY / TICKS_A_SECOND
    expired_s = now_s + EXPIRES_MS / 1000 + 10
    for _ in range(TICKS_A_SECOND + 1):
        queues.tick(expired_s)
    assert not vhost.nodes.storing


def test_what_is_declared_again_under_the_same_name_is_looked_at() -> None:
    hosted = Hosted()
    queues = BasicQueues(hosted.container.vhosts[""])
    traits = Traits(False, arguments={"x-expires": EXPIRES_MS})
    queues.delete(declare(queues, "a", traits))
    declare(queues, "a", traits)
    for _ in range(3):
        queues.tick(hosted.core.now + EXPIRES_MS / 1000 + 10)
    assert queues.find("a") is None


def test_the_end_of_a_connection_ends_its_queues_and_no_others() -> None:
    hosted = Hosted()
    queues = BasicQueues(hosted.container.vhosts[""])
    mine, theirs = Gone(), Gone()
    for name, owner in (("a", mine), ("b", theirs), ("c", mine)):
        declare(queues, name, Traits(False, owner=owner))
    kept = queues.find("c")
    assert kept is not None
    queues.delete(kept)
    declare(queues, "c", Traits(False, owner=theirs))
    queues.end_connection(mine)
    assert [queues.find(each) is None for each in "abc"] == [True, False, False]
