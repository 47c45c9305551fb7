"""What queues on disk write together is there after a crash, or none of it is.

Queues change in turns: some of them at once, together, or one alone. Then the process is killed in
the middle of its writes, so that the log ends behind any octet, or power is cut, and any sectors
are lost. Whatever is left, the next life finds the queues as they were after one of the turns, and
after no earlier one than was reported as durable; and so it goes on.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING

import pytest
from kept_queues import KeptQueue
from mains import Mains, any_sectors, put
from test_torn_journal_properties import torn

from cogwork.container.journals.journals import QueueJournals
from cogwork.dataplane.core import Core
from cogwork.log.directory import Directory
from cogwork.log.disk_queue import DiskQueue
from cogwork.log.wal import Wal

if TYPE_CHECKING:
    from pathlib import Path

    from mains import Files

State = list[list[str]]

QUEUES, LIVES, TURNS, PLACES = 3, 3, 12, 25
FILE_BYTES = 1 << 15


class Life:
    """One life of a container's queues, over a log in a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mains = Mains()
        self.disk = DiskQueue(self.mains)
        self.wal = Wal(Directory(path), self.disk, "north", file_bytes=FILE_BYTES)
        core = Core()
        self.journals = QueueJournals(core, "north", has_disk=True)
        for record in self.wal.recover():
            self.journals.replay(record)
        self.mains.trust(path)
        self.queues = [KeptQueue(core=core) for _ in range(QUEUES)]
        for number, queue in enumerate(self.queues):
            queue.store.journal = None
            self.journals.open("", f"queue/{number}", {}, queue.store)
        self.journals.start(self.wal, {})
        self.wal.on_durable = self.journals.durable

    def state(self) -> State:
        return [queue.texts() for queue in self.queues]

    def close(self) -> None:
        self.wal.on_durable = lambda _: None
        self.disk.finish()
        self.wal._is_open = False
        self.wal.close()
        self.mains.close()


class Story:
    """Some lives, what the queues had after each turn, and up to which turn that was durable."""

    def __init__(self, seed: int, path: Path, *, is_together: bool) -> None:
        self.chance = random.Random(seed)
        self.path, self.probe = path / "queues", path / "probe"
        self.path.mkdir()
        self.is_together = is_together
        self.states: list[State] = []
        self.durable = 0

    async def live(self) -> tuple[Files, Files]:
        """Change the queues for some turns; return what is synchronised, and what was written."""
        life = Life(self.path)
        self.states, self.durable = [life.state()], 0
        await asyncio.sleep(0)  # new queues are written down
        self.settle(life)
        for turn in range(1, TURNS):
            self.change(life, turn)
            self.states.append(life.state())
            life.journals.when_durable(partial(self.note, turn))
            await asyncio.sleep(0)
            if self.chance.random() < 0.4:
                life.disk.dispatch()
        halves = life.mains.halt(self.path)
        life.close()
        return halves

    def settle(self, life: Life) -> None:
        while life.wal.durable_lsn < life.wal.end_lsn:
            life.disk.dispatch()

    def note(self, turn: int, is_durable: bool) -> None:
        assert is_durable
        self.durable = max(self.durable, turn)

    def change(self, life: Life, turn: int) -> None:
        touched = self.chance.sample(life.queues, self.chance.randint(1, QUEUES))
        if self.is_together:
            life.journals.write_together()
        for queue in touched:
            if self.chance.random() < 0.2:
                queue.store.purge()
            else:
                queue.send(*(f"{turn}-{at}" for at in range(self.chance.randint(1, 4))))

    def found(self, files: Files, path: Path) -> State:
        """Return what the next life finds in such a directory."""
        life = Life(put(path, files))
        state = life.state()
        life.close()
        return state

    def is_whole(self, files: Files) -> bool:
        """Return whether that is what one of the turns has left."""
        return self.found(files, self.probe) in self.states[self.durable :]

    def places(self, _name: str, changed: range) -> list[int]:
        return sorted(self.chance.sample(changed, min(PLACES, len(changed))))


@pytest.mark.parametrize("seed", range(8))
def test_a_log_that_ends_anywhere_has_all_of_a_turn_or_nothing(seed: int, tmp_path: Path) -> None:
    async def story() -> None:
        told = Story(seed, tmp_path, is_together=True)
        for _ in range(LIVES):
            synced, written = await told.live()
            for files in torn(synced, written, told.places):
                assert told.is_whole(files)
            left = any_sectors(synced, written, told.chance)
            assert told.is_whole(left)
            put(told.path, left)

    asyncio.run(story())


def test_queues_that_are_not_written_together_have_parts_of_turns(tmp_path: Path) -> None:
    """Else the others would find nothing out."""

    async def story() -> None:
        told = Story(0, tmp_path, is_together=False)
        synced, written = await told.live()
        assert not all(told.is_whole(files) for files in torn(synced, written, told.places))

    asyncio.run(story())
