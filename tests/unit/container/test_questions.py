"""What is asked of the owner of a queue, where that is this container."""

from __future__ import annotations

import asyncio

from hosted import LISTEN, Hosted
from text_messages import message
from wires import Peer

from cogwork.config.settings import Configuration, Queue
from cogwork.container.federation.questions import COUNTS, PURGE, Questions

WORK = "work/a"


def test_who_has_come_to_own_a_queue_while_it_asks_answers_itself() -> None:
    queues = [Queue(address=WORK, home="hosted")]
    hosted = Hosted(Configuration(id="hosted", listeners=[LISTEN], queues=queues))
    Peer(hosted).greet().publisher(WORK).send(message("one"))
    questions = Questions(
        "hosted",
        hosted.container.vhosts[""],
        session_to=lambda _container: None,
        is_reachable=lambda _container: True,
    )

    async def ask() -> tuple[int, int, int]:
        before = await questions.ask(WORK, COUNTS)
        purged = await questions.ask(WORK, PURGE)
        return before["ready"], purged["purged"], (await questions.ask(WORK, COUNTS))["ready"]

    assert asyncio.run(ask()) == (1, 1, 0)
