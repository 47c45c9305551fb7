"""A cluster of five under faults: one root a term, no answered declaration lost, equal digests."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import cogwork
from cogwork.cli.management.manager import Manager
from cogwork.client import ClientError
from cogwork.plugin.management import MESH

from .cables import BOTH, Cables
from .faulty_disks import SLOW, faulty_disk, lose_power
from .meshes import Member, linked, meshed
from .served import READY_TIMEOUT_S, done, ran, within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

IDS = ("a", "b", "c", "d", "e")
EDGES = tuple(itertools.combinations(IDS, 2))
FAULTS_S = float(os.environ.get("COGWORK_CHAOS_S", "12"))
SEEDS = [int(each) for each in os.environ.get("COGWORK_CHAOS_SEEDS", "1").split(",")]
ANSWER_S = 15.0
"""A request is answered by then, or the connection is gone: containers give up earlier."""

VOTERS = 3


FOLLOWED_S = 60.0
"""So long a member may take to make hundreds of exchanges that it knows of."""

PAUSE_S = 0.1
"""Between two declarations of a client: faults are looked at here, and not what all can carry."""


class Chaos:
    """Clients and faults of one run.

    Attributes:
        answered: The exchanges whose declaration was answered.
        roots: Who was told to be the root, by term.
        held: Requests that had no answer for too long.
    """

    def __init__(self, members: dict[str, Member], cables: Cables, seed: int) -> None:
        self.answered: set[str] = set()
        self.roots: dict[int, set[str]] = {}
        self.held: list[str] = []
        self._members = members
        self._cables = cables
        self._chance = random.Random(seed)
        self._lives: dict[str, object] = {each: object() for each in IDS}
        self._is_over = False

    async def run(self) -> None:
        """Have faults for a while, with clients at all members."""
        clients = [asyncio.create_task(self._declare(each)) for each in IDS]
        clients += [asyncio.create_task(self._watch(each)) for each in IDS]
        until_s = time.monotonic() + FAULTS_S
        faults = (
            self._kill,
            self._stop,
            self._part,
            self._isolate,
            self._change,
            self._slow_disk,
            self._lose_power,
        )
        while time.monotonic() < until_s:
            fault: Callable[[], Awaitable[None]] = self._chance.choice(faults)
            await fault()
            await asyncio.sleep(self._chance.uniform(0.1, 0.8))
        self._cables.heal()
        self._is_over = True
        await asyncio.gather(*clients)

    # -- faults

    async def _kill(self) -> None:
        member = self._members[self._chance.choice(IDS)]
        await self._end(member)
        await asyncio.sleep(self._chance.uniform(0.2, 1.5))
        await asyncio.to_thread(member.start)
        await self._listens(member)

    async def _end(self, member: Member) -> None:
        self._lives.pop(member.id, None)
        await asyncio.to_thread(member.kill)

    async def _listens(self, member: Member) -> None:
        await asyncio.to_thread(within, READY_TIMEOUT_S, member.listens, "it listens again")
        self._lives[member.id] = object()

    async def _stop(self) -> None:
        member = self._members[self._chance.choice(IDS)]
        member.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self._chance.uniform(0.5, 3.0))
        finally:
            member.signal(signal.SIGCONT)

    async def _part(self) -> None:
        """Let what one says not come to another, who is heard."""
        one, other = self._chance.sample(IDS, 2)
        near, far = self._cables.between(one, other)
        near.stall(BOTH, (True,))
        far.stall(BOTH, (False,))
        await asyncio.sleep(self._chance.uniform(0.5, 2.5))
        self._cables.heal()

    async def _isolate(self) -> None:
        own = self._chance.choice(IDS)
        for other in IDS:
            if other != own:
                for cable in self._cables.between(own, other):
                    cable.cut(BOTH, is_reset=True)
                    cable.refuse()
        await asyncio.sleep(self._chance.uniform(0.5, 2.5))
        self._cables.heal()

    async def _change(self) -> None:
        """Have other members vote; where no majority answers nothing changes."""
        wanted = self._chance.sample(IDS, VOTERS)
        at = self._members[self._chance.choice(IDS)]
        with suppress(ClientError, TimeoutError, OSError):
            async with asyncio.timeout(ANSWER_S), cogwork.connect(at.url, force=True) as client:
                await Manager(client).ask("PRIMARIES", MESH, body={"replicas": wanted})

    async def _slow_disk(self) -> None:
        """Have each synchronisation of one member take a fifth of a second."""
        file = slow_while(self._members[self._chance.choice(IDS)])
        file.touch()
        await asyncio.sleep(self._chance.uniform(0.5, 2.5))
        file.unlink()

    async def _lose_power(self) -> None:
        """Have the machine lose its power: all end, and what was not synchronised may be gone."""
        for member in self._members.values():
            member.signal(signal.SIGKILL)
        for member in self._members.values():
            await self._end(member)
            lose_power(member.folder / member.id, slow_while(member), self._chance)
        for member in self._members.values():
            await asyncio.to_thread(member.start)
        for member in self._members.values():
            await self._listens(member)

    # -- clients

    async def _asked(self, name: str, work: Callable[[Manager], Awaitable[None]]) -> None:
        """Ask a member again and again; a new connection follows one that is lost."""
        while not self._is_over:
            try:
                async with cogwork.connect(self._members[name].url, force=True) as client:
                    while not self._is_over:
                        await self._answered(name, work(Manager(client)))
            except (ClientError, OSError):
                await asyncio.sleep(0.05)

    async def _answered(self, name: str, request: Awaitable[None]) -> None:
        """Await the answer of a member; take note if it is late although the member lives on."""
        begun_s, life = time.monotonic(), self._lives.get(name)
        try:
            async with asyncio.timeout(ANSWER_S):
                await request
        except TimeoutError:
            if life is not None and self._lives.get(name) is life:
                self.held.append(f"{name}: {time.monotonic() - begun_s:.1f} s")
            raise

    async def _declare(self, name: str) -> None:
        numbers = itertools.count()

        async def work(manager: Manager) -> None:
            exchange = f"{name}{next(numbers)}"
            await manager.ask("CREATE", "exchange", f"exchange/{exchange}", body={"type": "topic"})
            self.answered.add(exchange)
            await asyncio.sleep(PAUSE_S)

        await self._asked(name, work)

    async def _watch(self, name: str) -> None:
        async def work(manager: Manager) -> None:
            found = await manager.get("STATUS", MESH)
            if found["root"] and found["term"]:  # who holds no replica may know of no term
                self.roots.setdefault(int(found["term"]), set()).add(str(found["root"]))
            await asyncio.sleep(0.2)

        await self._asked(name, work)


def slow_while(member: Member) -> Path:
    """Return the file that makes a member's disk slow while it is there."""
    return member.folder / f"{member.id}.slow"


def status(member: Member) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        ran("cluster", "status", member.url, "--json").stdout or "{}"
    )
    return found


def are_equal(member: Member) -> bool:
    """Return whether all five are active, with one digest, as a member finds them."""
    rows = status(member).get("members", [])
    is_active = [row["state"] for row in rows] == ["active"] * len(IDS)
    return is_active and len({(row["digest"], row["next"]) for row in rows}) == 1


def exchanges(member: Member) -> set[str]:
    rows = json.loads(done("exchange", "list", member.url, "--json").stdout)
    return {str(row["exchange"]) for row in rows}


def knows(member: Member, names: set[str]) -> bool:
    return names <= exchanges(member)


@pytest.mark.parametrize("seed", SEEDS)
def test_five_members_keep_what_they_answered_under_faults(tmp_path: Path, seed: int) -> None:
    def head(name: str) -> str:
        return f'data_dir = "{tmp_path / name}"\n[cluster]\nprimaries = ["a", "b", "c"]\n'

    def dress(member: Member) -> None:
        member.environment = faulty_disk(tmp_path, SLOW, slow_while(member))

    sys.stdout.write(f"seed {seed}, {FAULTS_S:g} s of faults\n")
    with (
        Cables() as cables,
        meshed(tmp_path, IDS, EDGES, head=head, lay=cables.lay, dress=dress) as members,
    ):
        linked(members.values())
        for each in members.values():
            within(READY_TIMEOUT_S, partial(are_equal, each), "the cluster has begun")
        chaos = Chaos(members, cables, seed)
        asyncio.run(chaos.run())
        for each in members.values():
            within(READY_TIMEOUT_S, partial(are_equal, each), f"{each.id} finds all equal")
        assert {term: who for term, who in chaos.roots.items() if len(who) > 1} == {}
        assert chaos.held == []
        assert len(chaos.answered) > len(IDS)
        for each in members.values():
            # What is known of the cluster is made here a little later, where there is much of it.
            has_all = partial(knows, each, chaos.answered)
            within(FOLLOWED_S, has_all, f"{each.id} has all that was answered")
        found = f"{len(chaos.answered)} declarations answered, {len(chaos.roots)} terms with a root"
        sys.stdout.write(f"{found}\n")
