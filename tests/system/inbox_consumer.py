"""A consumer that dies: it processes a stream and kills itself at a seeded moment.

    python inbox_consumer.py DATABASE RECORDS MOMENT HOW

It dies at its `MOMENT`th moment (0 for never), wherever that is: before the note, between note and
effect, before the commit, after it. `HOW` is `resume` (reads on from its position), `again` (reads
everything again), or `without` (has no inbox).
"""

import asyncio
import os
import signal
import sqlite3
import sys

from cogwork.engines.orb import OrbHost
from cogwork.inbox import Inbox
from cogwork.plugin.engine.batch import Batch, Chunk
from cogwork.plugin.engine.contract import Origin, Start

STREAM = "stream/orders"


class Fate:
    """Counts moments."""

    def __init__(self, moment: int) -> None:
        self._left = moment

    def moment(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(path: str, count: int, moment: int, how: str) -> None:
    engine = await OrbHost().open("orders", {})
    await engine.append(Batch.of([b"%d" % (i * i) for i in range(count)]))
    database = sqlite3.connect(path)
    inbox = Inbox(database, "consumer")
    fate = Fate(moment)
    start: Start = inbox.start(STREAM) if how == "resume" else Origin.FIRST
    async for found in engine.subscribe(start):
        if not isinstance(found, Chunk):
            break
        for offset, record in enumerate(found.batch.records(), found.offset):
            fate.moment()
            with database:
                if how == "without" or inbox.take(STREAM, offset):
                    fate.moment()
                    database.execute("INSERT INTO effect VALUES (?, ?)", (offset, int(record)))
                    database.execute("UPDATE total SET value = value + ?", (int(record),))
                    fate.moment()
            fate.moment()
    database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
