"""Compute services: each has a connection of its own, serves calls, and notifies."""

import asyncio
import random
from pathlib import Path

from plan import EXCHANGE, NOTIFICATIONS, TOPIC, Plan, host
from role import Notes, closing, keeping_on

import cogwork
from cogwork import CogworkError

CROWD = 25
"""Connections that are begun at once by a process."""

CLOSE_S = 20.0


class Compute:
    """One service."""

    def __init__(self, plan: Plan, number: int, notes: Notes, crowd: asyncio.Semaphore) -> None:
        self.plan = plan
        self.number = number
        self.name = host(number)
        self.notes = notes
        self.crowd = crowd
        self.random = random.Random(f"{plan.seed}/{self.name}")
        self.count = 0
        self.reached: set[int] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until all is to stop."""
        await keeping_on(lambda: self._serve(stop), self.notes, stop)

    async def _serve(self, stop: asyncio.Event) -> None:
        await self.crowd.acquire()
        is_free = False
        try:
            async with cogwork.connect(self.plan.urls_of(self.number), name=self.name) as client:
                service = client.service(TOPIC, server=self.name, exchange=EXCHANGE)
                service.method(self.build)
                service.method(self.stop_instance)
                service.method(self.refresh)
                async with service, client.publisher(NOTIFICATIONS, on_doubt="resend") as out:
                    self.crowd.release()
                    is_free = True
                    self.notes.counts["computes"] += 1
                    serving = asyncio.create_task(service.wait())
                    try:
                        await self._notify(out, stop)
                        serving.cancel()
                        await asyncio.gather(serving, return_exceptions=True)
                    finally:
                        self.notes.counts["computes"] -= 1
                        serving.cancel()
        finally:
            if not is_free:
                self.crowd.release()

    async def build(self, instance: int) -> str:
        """Build an instance, which takes a moment."""
        await asyncio.sleep(self.random.random() * 0.02)
        self.notes.counts["built"] += 1
        return f"{instance} on {self.name}"

    async def stop_instance(self, instance: int) -> None:
        """Stop an instance; nobody waits for it."""
        self.notes.note("casts run", instance)

    async def refresh(self, number: int) -> None:
        """Look at its configuration again; each fanout comes once."""
        is_new = number not in self.reached
        self.reached.add(number)
        self.notes.counts["fanouts reached" if is_new else "fanouts reached again"] += 1

    async def _notify(self, out: cogwork.client.Publisher, stop: asyncio.Event) -> None:
        """Tell how it is, now and then, and wait each time until the mesh has it for good."""
        while not stop.is_set():
            pause_s = self.random.expovariate(1 / self.plan.notify_each_s)
            try:
                await asyncio.wait_for(stop.wait(), pause_s)
            except TimeoutError:
                pass
            else:
                return
            self.count += 1
            name = f"{self.name}/{self.count}"
            try:
                await out.send({"host": self.name, "number": self.count}, message_id=name)
            except CogworkError as error:
                self.notes.counts[f"notifications refused: {type(error).__name__}"] += 1
                raise
            self.notes.note("notifications accepted", name)


async def serve(plan: Plan, process: int, notes: Notes, stop: asyncio.Event) -> None:
    """Run the computes of one process."""
    crowd = asyncio.Semaphore(CROWD)
    numbers = range(process, plan.computes, plan.compute_processes)
    tasks = [asyncio.create_task(Compute(plan, n, notes, crowd).run(stop)) for n in numbers]
    await stop.wait()
    notes.counts["computes that did not end"] += await closing(tasks, CLOSE_S)


def file_of(plan: Plan, process: int) -> Path:
    """Name the file that takes the notes."""
    return Path(plan.folder) / f"computes-{process}.json"
