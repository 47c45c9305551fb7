"""A process of the load: it works until its stdin ends, tells how far it is, and notes what it did.

On stdout a line of JSON each second has its counters; the last one has all that it noted.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from cogwork import CogworkError

__all__ = ("Notes", "closing", "keeping_on", "run")

TELL_EACH_S = 1.0
PAUSE_S = 0.2


class Notes:
    """What a process counts, and the names of what it must be able to prove.

    Attributes:
        counts: By what it is.
        names: Lists of names, by what was done to these.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.names: dict[str, list[object]] = {}

    def note(self, what: str, name: object) -> None:
        """Note a name."""
        self.counts[what] += 1
        self.names.setdefault(what, []).append(name)

    def save(self, file: Path) -> None:
        """Write down all of it."""
        file.write_text(json.dumps({"counts": self.counts, "names": self.names}))


async def stdin_end() -> None:
    """Wait until nobody has the other end of stdin any more."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


async def run(
    work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], notes: Notes, file: Path
) -> None:
    """Run `work(stop)` until stdin ends and it has come to its end, and saves the notes."""
    stop = asyncio.Event()
    working = asyncio.create_task(work(stop))
    ending = asyncio.create_task(stdin_end())
    ending.add_done_callback(lambda _: stop.set())
    while not working.done():
        tell(notes)
        await asyncio.wait([working], timeout=TELL_EACH_S)
    ending.cancel()
    tell(notes)
    await working
    notes.save(file)


def tell(notes: Notes) -> None:
    """Say how far it is; whoever listened may have gone."""
    with suppress(BrokenPipeError):
        print(json.dumps(notes.counts), flush=True)


async def keeping_on(
    attempt: Callable[[], Awaitable[None]], notes: Notes, stop: asyncio.Event
) -> None:
    """Run `attempt()` again where the mesh ended it, until all is to stop."""
    while not stop.is_set():
        try:
            await attempt()
        except CogworkError as error:
            notes.counts[f"begun again after {type(error).__name__}"] += 1
            await asyncio.sleep(PAUSE_S)


async def closing(tasks: list[asyncio.Task[None]], within_s: float) -> int:
    """Wait for tasks to end; cancel those that do not, and count them."""
    if not tasks:
        return 0
    _, late = await asyncio.wait(tasks, timeout=within_s)
    for task in late:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return len(late)
