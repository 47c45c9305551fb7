"""`cogwork top`: a container at a glance, again and again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from rich.live import Live

from cogwork.amqp.errors import CogworkError
from cogwork.cli.management.group import NotMet, met
from cogwork.cli.options.certificates import certified
from cogwork.cli.options.quantities import DURATION, Whole
from cogwork.cli.terminal.onlooking import while_read
from cogwork.cli.terminal.rendering import jsonable
from cogwork.cli.terminal.tables import console
from cogwork.cli.top.keyboard import typed
from cogwork.cli.top.pages import PAGES
from cogwork.cli.top.samples import Sample, look
from cogwork.cli.top.screen import BARS_MAX, drawn
from cogwork.cli.top.view import View, pressed
from cogwork.client import LinkRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

__all__ = ("top",)

HEAD_ROWS = 100
"""More lines than there are beside rows: where the output is no terminal, all rows are printed."""

RETRY_S = 1.0
"""After a container that was there has gone."""


@click.command()
@click.argument("url")
@click.option(
    "--page",
    type=click.Choice(list(PAGES)),
    default="queues",
    show_default=True,
    help="What to show first.",
)
@click.option(
    "--every",
    "interval_s",
    type=DURATION,
    default=2.0,
    show_default=True,
    metavar="S",
    help="Time between two looks.",
)
@click.option("--count", type=Whole(1), metavar="N", help="End after N looks.")
@certified
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line for each look.")
def top(url: str, page: str, interval_s: float, count: int | None, *, as_json: bool) -> None:
    """Watch a container: load, rates, what is busiest.

    Pages show queues, streams, addresses, connections and links between containers, the busiest
    first. Keys: 1 to 5 or Tab choose a page, the left and right arrows the column to sort by, r
    reverses, up and down scroll, the space bar pauses, q quits. Where the output is no terminal,
    each look is printed. Needs the right to manage $management.
    """
    watching = _Watch(url, page, interval_s, count)
    screen = console()
    if as_json or not screen.is_terminal:
        show = _print_json if as_json else _printed(screen)
        asyncio.run(while_read(watching.run(show)))
    else:
        asyncio.run(_interactive(watching, screen))


async def _interactive(watching: _Watch, screen: Console) -> None:
    live = Live(console=screen, screen=True, auto_refresh=False)
    with typed() as keys, live:

        def show(watch: _Watch) -> None:
            if watch.sample is not None:
                shown = drawn(
                    watch.sample, watch.view, [*watch.history], screen.size, watch.trouble
                )
                live.update(shown, refresh=True)

        running = asyncio.create_task(watching.run(show))
        pressing = asyncio.create_task(watching.heed(keys, show))
        try:
            await asyncio.wait((running, pressing), return_when=asyncio.FIRST_COMPLETED)
            for task in (running, pressing):
                if task.done():
                    task.result()
        finally:
            running.cancel()
            pressing.cancel()
            await asyncio.gather(running, pressing, return_exceptions=True)


def _print_json(watch: _Watch) -> None:
    sample = watch.sample
    if sample is None or watch.trouble is not None:
        return
    found = {
        "containers": sample.containers,
        "cpu_share": sample.cpu_share,
        "frames_per_s": sample.frames_per_s,
        sample.page: sample.rows,
        "total": sample.total,
        "problem": sample.problem,
    }
    click.echo(json.dumps(jsonable(found), ensure_ascii=False))
    sys.stdout.flush()


def _printed(screen: Console) -> Callable[[_Watch], None]:
    def show(watch: _Watch) -> None:
        if watch.trouble is not None:
            click.echo(watch.trouble, err=True)
        elif watch.sample is not None:
            size = (screen.width, len(watch.sample.rows) + HEAD_ROWS)
            history = [*watch.history]
            screen.print(drawn(watch.sample, watch.view, history, size, has_keys=False))

    return show


class _Watch:
    """Looks at a container again and again, also once it is there again.

    Attributes:
        view: What is chosen.
        sample: What the last look found; None before the first.
        history: The frames that came in a second, look by look.
        trouble: Why there is nothing newer; None where there is.
    """

    def __init__(self, url: str, page: str, interval_s: float, count: int | None) -> None:
        """Look at nothing yet.

        Args:
            url: Where.
            page: What to show first.
            interval_s: The time between two looks.
            count: How many looks; None for no end.
        """
        self.view = View.of(page)
        self.sample: Sample | None = None
        self.history: deque[float] = deque(maxlen=BARS_MAX)
        self.trouble: str | None = None
        self._url = url
        self._interval_s = interval_s
        self._left = count
        self._hurry = asyncio.Event()

    async def run(self, show: Callable[[_Watch], None]) -> None:
        """Look until that is enough.

        Args:
            show: Shows what there is.

        Raises:
            CogworkError: The container was never there, or the login may not ask.
        """
        while True:
            try:
                return await self._run(show)
            except LinkRefused:
                raise
            except (CogworkError, NotMet) as error:
                if self.sample is None:
                    raise
                self.trouble = f"the container does not answer: {error}"
                show(self)
                await asyncio.sleep(RETRY_S)

    async def _run(self, show: Callable[[_Watch], None]) -> None:
        async with met(self._url) as workers:
            while True:
                if not self.view.is_paused or self.sample is None:
                    self.sample = await look(workers, self.view.page, self.sample)
                    self.history.append(self.sample.frames_per_s)
                    self.trouble = None
                    show(self)
                    if self._left is not None:
                        self._left -= 1
                        if self._left == 0:
                            return
                self._hurry.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurry.wait(), self._interval_s)

    async def heed(self, keys: asyncio.Queue[str], show: Callable[[_Watch], None]) -> None:
        """Do what keys say, until one says that it is over."""
        while not self.view.has_ended:
            view = pressed(self.view, await keys.get())
            if view.page != self.view.page:
                self._hurry.set()
            self.view = view
            show(self)
