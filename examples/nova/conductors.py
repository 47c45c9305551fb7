"""Conductors: they call computes and schedulers, cast, and tell all computes something."""

import asyncio
import itertools
import random
from pathlib import Path

from plan import EXCHANGE, GRACE_S, SCHEDULER, TOPIC, Plan, host
from role import Notes, closing, keeping_on

import cogwork
from cogwork import CogworkError

SCHEDULERS = 3
LAST_CALLS_AT_ONCE = 20
LAST_TIMEOUT_S = 30.0


class Conductors:
    """All conductors, and the schedulers that they ask."""

    def __init__(self, plan: Plan, notes: Notes) -> None:
        self.plan = plan
        self.notes = notes
        self.numbers = itertools.count(1)
        self.random = random.Random(f"{plan.seed}/conductors")

    async def run(self, stop: asyncio.Event) -> None:
        """Work until all is to stop, and then ask every compute whether it is there."""
        over = asyncio.Event()
        schedulers = [asyncio.create_task(self._schedule(n, over)) for n in range(SCHEDULERS)]
        tasks = [asyncio.create_task(self._conduct(n, stop)) for n in range(self.plan.conductors)]
        tasks.append(asyncio.create_task(self._tell_all(stop)))
        await stop.wait()
        hung = await closing(tasks, self.plan.timeout_s + GRACE_S)
        self.notes.counts["calls that hung"] += hung
        await self._ask_everybody()
        over.set()
        await closing(schedulers, GRACE_S)

    async def _schedule(self, number: int, over: asyncio.Event) -> None:
        """Serve as one of the schedulers."""

        async def attempt() -> None:
            async with cogwork.connect(self.plan.urls_of(number)) as client:
                service = client.service(SCHEDULER, server=f"{number}", exchange=EXCHANGE)

                @service.method
                async def select(instance: int) -> str:
                    return host(instance % self.plan.computes)

                async with service:
                    await over.wait()

        await keeping_on(attempt, self.notes, over)

    async def _conduct(self, number: int, stop: asyncio.Event) -> None:
        """One conductor: a request after the other."""

        async def attempt() -> None:
            async with cogwork.connect(self.plan.urls_of(number)) as client:
                while not stop.is_set():
                    await asyncio.sleep(self.random.expovariate(1 / self.plan.pause_s))
                    await self._request(client)

        await keeping_on(attempt, self.notes, stop)

    async def _request(self, client: cogwork.Client) -> None:
        number = next(self.numbers)
        kind = self.random.choices(["build", "select", "cast"], [5, 2, 3])[0]
        begin_s = asyncio.get_running_loop().time()
        try:
            await getattr(self, f"_{kind}")(client, number)
        except CogworkError as error:
            self.notes.counts[f"{kind} failed: {type(error).__name__}"] += 1
        took_s = asyncio.get_running_loop().time() - begin_s
        if kind != "cast":
            self.notes.note("call seconds", round(took_s, 4))
        if took_s > self.plan.timeout_s + GRACE_S:
            self.notes.note(f"{kind} late", round(took_s, 3))

    async def _build(self, client: cogwork.Client, number: int) -> None:
        name = host(self.random.randrange(self.plan.computes))
        made = await client.call(
            TOPIC,
            "build",
            server=name,
            exchange=EXCHANGE,
            timeout_s=self.plan.timeout_s,
            instance=number,
        )
        assert made == f"{number} on {name}", f"{name} was asked for {number}, and said {made}"
        self.notes.counts["build returned"] += 1

    async def _select(self, client: cogwork.Client, number: int) -> None:
        found = await client.call(
            SCHEDULER, "select", exchange=EXCHANGE, timeout_s=self.plan.timeout_s, instance=number
        )
        assert found == host(number % self.plan.computes)
        self.notes.counts["select returned"] += 1

    async def _cast(self, client: cogwork.Client, number: int) -> None:
        """Not settled beforehand: a compute has it when this returns."""
        await client.cast(
            TOPIC,
            "stop_instance",
            server=host(self.random.randrange(self.plan.computes)),
            exchange=EXCHANGE,
            timeout_s=self.plan.timeout_s,
            settled=False,
            instance=number,
        )
        self.notes.note("casts accepted", number)

    async def _tell_all(self, stop: asyncio.Event) -> None:
        async def attempt() -> None:
            async with cogwork.connect(self.plan.urls_of(0)) as client:
                while not stop.is_set():
                    await asyncio.sleep(self.plan.fanout_each_s)
                    number = next(self.numbers)
                    await client.fanout(TOPIC, "refresh", exchange=EXCHANGE, number=number)
                    self.notes.counts["fanouts sent"] += 1

        await keeping_on(attempt, self.notes, stop)

    async def _ask_everybody(self) -> None:
        """Call each compute once, now that no container is killed any more."""
        room = asyncio.Semaphore(LAST_CALLS_AT_ONCE)
        async with cogwork.connect(self.plan.urls_of(0)) as client:

            async def ask(name: str) -> None:
                async with room:
                    try:
                        await client.call(
                            TOPIC,
                            "build",
                            server=name,
                            exchange=EXCHANGE,
                            timeout_s=LAST_TIMEOUT_S,
                            instance=0,
                        )
                    except CogworkError as error:
                        self.notes.note("computes that do not answer", f"{name}: {error}")
                    else:
                        self.notes.counts["computes that answer"] += 1

            await asyncio.gather(*(ask(host(n)) for n in range(self.plan.computes)))


def file_of(plan: Plan) -> Path:
    """Name the file that takes the notes."""
    return Path(plan.folder) / "conductors.json"
