"""What is declared for all containers: the stream `$cluster`, and how this container follows it.

Theory of operation. A declaration is a record of a replicated stream whose replicas are the
voters'. Every container reads it, from the newest snapshot on, and applies each record to its own
copy of the declarations; equal records give equal copies. Who declares something learns what came
of it when the record comes by. Now and then whoever leads keeps a snapshot, and gives up what is
older.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from cogwork import __version__
from cogwork.amqp.errors import CogworkError
from cogwork.cluster.declarations import (
    ROOT,
    SET_SINCE,
    Apply,
    Declarations,
    Declare,
    Delete,
    Move,
    Moved,
    Outcome,
    Primaries,
    PrimariesMoved,
    Raise,
    Recover,
    Set,
    Supports,
    decode,
    encode,
)
from cogwork.cluster.levels import FIRST_LEVEL, NotUnderstood
from cogwork.cluster.members import MemberFacts
from cogwork.cluster.topology import Change
from cogwork.container.cluster.quorum import demand_majority, whom_it_lacks
from cogwork.container.cluster.roots import brings_root, demand_root, disabled_roots
from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import CaughtUp, FromOffset, Origin, Snapshot
from cogwork.plugin.engine.errors import (
    ConsensusError,
    Malformed,
    NotAMember,
    Truncated,
    Unavailable,
    Unknown,
)
from cogwork.replication.calls import GetMembers, MembersAre, StreamKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from cogwork.cluster.declarations import Check, Command, Declaration, Part, Value
    from cogwork.cluster.topology import Topology, TopologyCommand
    from cogwork.container.cluster.identity import Identity
    from cogwork.plugin.engine.batch import Chunk
    from cogwork.plugin.engine.contract import Start
    from cogwork.plugin.engine.placement import Placement
    from cogwork.replication.engine import RaftEngine
    from cogwork.replication.service import RaftService

__all__ = ("Cluster", "Listener")

STREAM = "$cluster"
GROUP = 1
"""The group of `$cluster`; declared ones have higher numbers."""

KEY = StreamKey(STREAM, GROUP)

SNAPSHOT_EVERY = 1_000
"""So many records are replaced by a snapshot."""

OUTCOMES_MAX = 10_000

ANSWER_TIMEOUT_S = 4.0
"""So long who deletes waits for what came of it: with the wait for a majority less than clients."""

LEADER_TIMEOUT_S = 0.5
"""So long a primary may take to say who leads."""

PAUSE_S = 0.2

LOOK_S = 1.0
"""How often a container that is not current looks who is missing."""

REPLACED = "a snapshot stands for what came of it"

log = logging.getLogger("cogwork")

T = TypeVar("T")


class Listener(Protocol):
    """Who has to follow declarations."""

    def declared(self, declaration: Declaration) -> None:
        """Something is declared, by whomever."""

    def moved(self, declaration: Declaration) -> None:
        """Others are to hold what is declared, or do so now."""

    def deleted(self, declaration: Declaration) -> None:
        """A declaration is taken back, by whomever."""

    def current(self, declarations: Declarations) -> None:
        """All that was declared while this container was away is known now."""


class Cluster:
    """This container's copy of the declarations.

    Attributes:
        voters: The containers with replicas of `$cluster`, in order of leader priority.
        declarations: The copy.
        next: The offset of the record that comes next.
        on_set: Called when users, permissions or virtual hosts are others than before.
        on_topology: Called with what has come to the topology, and gone from it.
        on_failure: Called when what is declared needs a later version: the container has to stop.
    """

    def __init__(
        self,
        voters: list[str],
        service: RaftService,
        listener: Listener,
        identity: Identity | None = None,
        check: Check | None = None,
    ) -> None:
        """Initialize it; it knows nothing yet.

        Args:
            voters: The containers with replicas, in order of leader priority.
            service: Has the stream.
            listener: Follows.
            identity: Knows which cluster it is, and whether it may begin; None where it may.
            check: Says what is wrong with what is set; None finds nothing.
        """
        self._identity = identity
        self._wanted: int | None = None
        self._configured = list(voters)
        self._placement = None if identity is None else identity.primaries
        self.voters = voters if self._placement is None else list(self._placement.voters)
        self._check = check
        self.declarations = Declarations(check)
        self.next = 0
        self.on_set: Callable[[], object] = _do_nothing
        self.on_topology: Callable[[Sequence[Change]], None] = _follow_nothing
        self._current = asyncio.Event()
        self._has_caught_up = False
        self._service = service
        self._listener = listener
        self._engine: RaftEngine | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._outcomes: OrderedDict[int, Outcome] = OrderedDict()
        self._reaching: list[tuple[int, Callable[[int], object]]] = []
        self._kept, self._kept_level = 0, FIRST_LEVEL
        self._barred: frozenset[str] = frozenset()
        self._failure: NotUnderstood | None = None
        self.on_failure: Callable[[NotUnderstood], object] = _ignore
        self._problem = self._why_behind = ""
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_current(self) -> bool:
        """Whether it has caught up with the stream once."""
        return self._current.is_set()

    async def when_current(self) -> None:
        """Wait until it has caught up with the stream once, where it follows that at all."""
        if self._task is not None:
            await self._current.wait()

    async def know_all(self) -> None:
        """Wait until everything is known here that was declared before the call.

        Raises:
            ConsensusError: That cannot be found out: no majority answers, say.
        """
        end = (await (await self._open()).bounds()).next
        if self.next < end:
            reached: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self.when_applied(end, partial(_set_result, reached))
            await reached

    def when_applied(self, end: int, call: Callable[[int], object]) -> None:
        """Have a call made with the next offset once all before one is applied here."""
        if self.next >= end:
            call(self.next)
        else:
            self._reaching.append((end, call))

    async def find(self, kind: str, vhost: str, name: str) -> Declaration | None:
        """Return what is declared, also if that was a moment ago and elsewhere (Raft §6.4).

        Where no majority answers, what is known here decides.

        Args:
            kind: What it is: `stream`, `queue`.
            vhost: Its virtual host.
            name: Its name.
        """
        found = self.declarations.find(kind, vhost, name)
        if found is None:
            with suppress(TimeoutError, ConsensusError):
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    await self.know_all()
            found = self.declarations.find(kind, vhost, name)
        return found

    def start(self) -> None:
        """Begin to follow."""
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run())
        self._watching = loop.create_task(self._watch())

    async def close(self) -> None:
        """Follow no more; whoever waits for a command's outcome does not hear of it here."""
        tasks = [each for each in (self._task, self._watching) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting.values():
            if not waiter.done():
                waiter.set_exception(Unknown("the container is stopping"))

    # -- declaring

    async def declare(
        self,
        kind: str,
        vhost: str,
        name: str,
        options: Mapping[str, Value],
        defaults: Mapping[str, Value] | None = None,
    ) -> Declaration:
        """Declare something for all containers; what is there with these options stays.

        Args:
            kind: What it is.
            vhost: Its virtual host.
            name: Its name there.
            options: As they hold here.
            defaults: What an option is that was left out by who declared it first, as a container
                did that did not know of it yet.

        Raises:
            ValueError: It cannot be, or is there with other options; the text says which.
            ConsensusError: It is not known, or not at all.
        """
        there = self.declarations.find(kind, vhost, name)
        told = dict(options)
        if there is not None:
            for key, value in (defaults or {}).items():
                if key not in there.options and told.get(key) == value:
                    del told[key]
            if there.options == told:
                return there
        outcome = await self._order(Declare(kind, vhost, name, told))
        if outcome.problem or outcome.declaration is None:
            raise ValueError(outcome.problem)
        return outcome.declaration

    async def delete(self, kind: str, vhost: str, name: str) -> bool:
        """Take a declaration back; return whether there was one.

        Raises:
            Unavailable: No majority answers; nothing is deleted, now or later.
            ValueError: It may not be deleted; the text says why.
            ConsensusError: It is not known, or not at all.
        """
        await self.demand_majority()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                outcome = await self._order(Delete(kind, vhost, name))
        except TimeoutError:
            why = await whom_it_lacks(self._service, KEY, self.voters)
            raise Unknown(f"nobody has answered within {ANSWER_TIMEOUT_S:g} s, {why}") from None
        if outcome.problem:
            raise ValueError(outcome.problem)
        return outcome.has_changed

    async def demand_majority(self) -> None:
        """Wait a while until a majority of the voters answers.

        Raises:
            Unavailable: None does; the text says who is missing.
        """
        await demand_majority(self._service, await self._open(), KEY, self.voters)

    async def demand_root(self) -> None:
        """Wait a while until no disabled primary leads.

        Raises:
            Unavailable: One does.
        """
        if self._barred:
            await demand_root(self._find_leader, self._barred.__contains__)

    async def _find_leader(self) -> str | None:
        """Return who leads; a container without a replica knows whom it has heard of last."""
        if self._service.term_of(STREAM):
            return self._leader()
        with suppress(ConsensusError):
            return (await (await self._open()).members()).leader
        return None

    async def move(
        self,
        declaration: Declaration,
        voters: Sequence[str],
        learners: Sequence[str],
        present: Sequence[str],
    ) -> None:
        """Declare that others are to hold something; whoever leads there then sees to it.

        Args:
            declaration: What.
            voters: Who is to hold it, in order of leader priority.
            learners: Who is to have a copy that counts for nothing.
            present: Who holds it; counts where it was never moved.

        Raises:
            ValueError: These cannot hold it, or it has gone.
            ConsensusError: It is not known, or not at all.
        """
        kind, vhost, name, number = _named(declaration)
        command = Move(kind, vhost, name, number, list(voters), list(learners), list(present))
        outcome = await self._order(command)
        if outcome.problem:
            raise ValueError(outcome.problem)

    async def move_primaries(self, voters: Sequence[str]) -> None:
        """Declare that others are to hold `$cluster`; whoever leads there then sees to it.

        Args:
            voters: Who is to hold it, in order of leader priority.

        Raises:
            Unavailable: The cluster has no majority.
            ValueError: These cannot hold it.
        """
        try:
            outcome = await self._order(Primaries(list(voters), list(self.voters)))
        except Unknown as error:
            # To declare the same once more changes nothing.
            raise Unavailable(f"the cluster does not answer: {error.reason}") from error
        if outcome.problem:
            raise ValueError(outcome.problem)

    async def end_move_of_primaries(self, move: int, floor: tuple[int, int]) -> None:
        """Declare that a move of `$cluster` is done: see `end_move`."""
        await self._order(PrimariesMoved(move, *floor))

    async def end_move(self, declaration: Declaration, move: int, floor: tuple[int, int]) -> None:
        """Declare that a move is done.

        Args:
            declaration: Of what.
            move: Which one.
            floor: Term and index of an entry that those who hold it have committed.

        Raises:
            ConsensusError: It is not known, or not at all.
        """
        await self._order(Moved(*_named(declaration), move, *floor))

    async def set(
        self,
        kind: str,
        vhost: str,
        name: str,
        options: Mapping[str, Value],
        expected: Mapping[str, Value] | None,
    ) -> None:
        """Declare a user, a permission or a virtual host, or change it.

        Args:
            kind: What it is.
            vhost: Its virtual host.
            name: Its name there.
            options: All of them.
            expected: Those that it has; None where it is new.

        Raises:
            ValueError: It cannot be, or is not as expected; the text says which.
            ConsensusError: It is not known, or not at all.
        """
        before = None if expected is None else dict(expected)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                outcome = await self._order(Set(kind, vhost, name, dict(options), before))
        except TimeoutError:
            why = await whom_it_lacks(self._service, KEY, self.voters)
            raise Unknown(f"nobody has answered within {ANSWER_TIMEOUT_S:g} s, {why}") from None
        if outcome.problem:
            raise ValueError(outcome.problem)

    def copied(self) -> Declarations:
        """Return a copy of the declarations, to try something."""
        return Declarations.from_bytes(self.declarations.to_bytes(), self._check)

    async def apply(self, commands: Sequence[Part]) -> Outcome:
        """Do what several commands say, or nothing of it; return which could not be done.

        Raises:
            ConsensusError: It is not known whether it is done, or it is not.
        """
        return await self.change_topology(Apply(list(commands)))

    async def raise_level(self, level: int, supports: Mapping[str, int]) -> None:
        """Raise the feature level, once every member knows the higher one.

        Args:
            level: The new one.
            supports: The highest level that members have said they know.

        Raises:
            ValueError: Somebody does not know it; the text names who.
            ConsensusError: It is not known, or not at all.
        """
        outcome = await self._order(Raise(level, dict(supports), list(self.voters)))
        if outcome.problem:
            raise ValueError(outcome.problem)

    async def announce(self, container: str, level: int) -> None:
        """Announce the highest feature level that a container knows; 0 where it leaves for good.

        Raises:
            ConsensusError: It is not known, or not at all.
        """
        await self._order(Supports(container, level))

    async def keep_level(self) -> None:
        """Have a snapshot stand for all that was declared before the feature level rose.

        A container of an older version that comes later begins with it, and cannot read it: it does
        not pass over the command that raised the level.
        """
        if self.declarations.level > self._kept_level:
            await self._keep(await self._open())

    async def change_topology(self, command: TopologyCommand | Delete | Apply) -> Outcome:
        """Declare, bind or delete something of the topology; return once it is so here.

        Raises:
            ConsensusError: It is not known, or not at all.
            ValueError: It cannot be.
        """
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return await self._order(command)
        except TimeoutError:
            why = await whom_it_lacks(self._service, KEY, self.voters)
            raise Unknown(f"nobody has answered within {ANSWER_TIMEOUT_S:g} s, {why}") from None

    async def _order(self, command: Command) -> Outcome:
        engine = await self._open()
        if not brings_root(command):
            await self.demand_root()
        appended = await engine.append(Batch.of([_written(command)]))
        offset = appended.first_offset
        if offset is None:
            raise Unknown("the answer came too late")
        known = self._outcomes.get(offset)
        if known is not None:
            return known
        if offset < self.next:  # it was passed over, or is long ago
            raise Unknown(REPLACED)
        waiter: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[offset] = waiter
        return await waiter

    async def _open(self) -> RaftEngine:
        if self._identity is not None:
            await self._identity.decide()
        if self._engine is None:
            try:
                self._engine = await self._open_at(self._placement or self.voters)
            except NotAMember as error:  # the configuration names it, and the cluster does not
                self.voters = error.voters
                self._engine = await self._open_at(self.voters)
        return self._engine

    async def _open_at(self, replicas: Placement | list[str]) -> RaftEngine:
        return await self._service.open(STREAM, {"group": GROUP, "replicas": replicas})

    # -- following

    async def _run(self) -> None:
        start: Start = Origin.SNAPSHOT
        while True:
            try:
                await self._follow(start)
            except NotUnderstood as error:
                self._fail(error)
                return
            except (CogworkError, OSError) as error:
                self._tell_problem(str(error))
                is_behind = isinstance(error, Truncated) or not self.next
                start = Origin.SNAPSHOT if is_behind else FromOffset(self.next)
            await asyncio.sleep(PAUSE_S)

    def _fail(self, error: NotUnderstood) -> None:
        """Follow no more: to pass over what others apply would be to have another state."""
        self._failure = error
        log.error("the container stops: %s", error)
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting.values():
            if not waiter.done():
                waiter.set_exception(Unknown("the container is stopping"))
        self.on_failure(error)

    async def _watch(self) -> None:
        """Keep what delays this container in mind, for people, until it has caught up."""
        while not self.is_current:
            await asyncio.sleep(LOOK_S)
            self._why_behind = await whom_it_lacks(self._service, KEY, self.voters)

    def _tell_problem(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            log.warning("cannot follow the cluster's declarations: %s", problem)

    async def _follow(self, start: Start) -> None:
        engine = await self._open()
        self._has_caught_up = False
        async for each in engine.subscribe(start):
            if isinstance(each, Snapshot):
                self._restore(each)
            elif isinstance(each, CaughtUp):
                self._problem = ""
                self._has_caught_up = True
                self._follow_primaries()
                if not self.is_current:
                    await self._take_voters(engine)
                    self._wanted = (await engine.bounds()).next if self._lacks_past else self.next
                else:
                    self._tell(self._listener.current, self.declarations)
            else:
                self._apply(each)
                await self._look_whether_to_keep(engine)
            if not self.is_current and self._wanted is not None and self.next >= self._wanted:
                self._begin()

    @property
    def _lacks_past(self) -> bool:
        return self._identity is not None and self._identity.lacks_past

    def _begin(self) -> None:
        """Take note that all is known here that was declared before this container began."""
        if self._identity is not None and self._lacks_past:
            self._identity.note_past(self.declarations.next_number)
        self._current.set()
        self._tell(self._listener.current, self.declarations)

    async def _take_voters(self, engine: RaftEngine) -> None:
        """Go by those that the cluster has, whatever the configuration says.

        Where a stream is held that does not say so follows from them, everywhere the same.
        """
        configured = self._configured
        if self.declarations.primaries is None:
            self.voters = list((await engine.members()).voters) or self.voters
        if self.voters != configured:
            log.warning(
                "the cluster's primaries are %s: ignoring [cluster] primaries = %s; to change "
                "them, run `cogwork cluster move URL --primaries %s`",
                ", ".join(self.voters),
                ", ".join(configured),
                ",".join(configured),
            )

    def _follow_primaries(self) -> None:
        """Have the replica of `$cluster` here opened or given up, as is declared.

        Before this container has caught up, what it reads is the past: it may have become a primary
        since, and its replica be one of those that the cluster lives by.
        """
        placement = self.declarations.primaries
        if placement is None:
            return
        self.voters = list(placement.voters)
        if not self._has_caught_up:
            return
        if self._identity is not None:
            self._identity.note_primaries(placement)
        self._service.place(STREAM, GROUP, placement)
        if self._service.own not in placement.holders and GROUP in self._service.unopened:
            self._service.discard(GROUP)  # it was given up while this container was away

    def _follow_roots(self) -> None:
        """Have those not lead that are disabled as root."""
        disabled = disabled_roots(self.declarations)
        if disabled != self._barred:
            self._barred = disabled
            self._service.bar(GROUP, disabled)

    def _restore(self, snapshot: Snapshot) -> None:
        if snapshot.offset < self.next:  # what was declared since would look as if it were deleted
            return
        before = self.declarations
        self.declarations = Declarations.from_bytes(snapshot.data, self._check)
        self.next = self._kept = snapshot.offset
        self._kept_level = self.declarations.level
        self._follow_primaries()
        self._follow_roots()
        self._tell(self.on_topology, _changes_between(before.topology, self.declarations.topology))
        for kind in ("stream", "queue"):
            for declaration in before.all(kind):
                found = self.declarations.find(kind, declaration.vhost, declaration.name)
                if found is None or found.number != declaration.number:
                    self._tell(self._listener.deleted, declaration)
            for declaration in self.declarations.all(kind):
                self._tell(self._listener.declared, declaration)
                self._tell(self._listener.moved, declaration)
        self.on_set()
        for offset in [each for each in self._waiting if each < self.next]:
            waiter = self._waiting.pop(offset)
            if not waiter.done():
                waiter.set_exception(Unknown(REPLACED))
        self._tell_reached()

    def tell_again(self, vhosts: Collection[str]) -> None:
        """Tell the listener of what is declared in virtual hosts that it did not have before."""
        for kind in ("stream", "queue"):
            for declaration in self.declarations.all(kind):
                if declaration.vhost in vhosts:
                    self._tell(self._listener.declared, declaration)
                    self._tell(self._listener.moved, declaration)
        found = [each for each in self.declarations.topology if each.vhost in vhosts]
        self._tell(self.on_topology, [Change(each, True) for each in found])

    def _apply(self, chunk: Chunk) -> None:
        for offset, record in enumerate(chunk.batch.records(), chunk.offset):
            if offset < self.next:
                continue
            try:
                outcome = self._apply_one(decode(record))
            except Malformed as error:
                outcome = Outcome(None, False, str(error))
            self.next = offset + 1
            self._outcomes[offset] = outcome
            if len(self._outcomes) > OUTCOMES_MAX:
                self._outcomes.popitem(last=False)
            waiter = self._waiting.pop(offset, None)
            if waiter is not None and not waiter.done():
                waiter.set_result(outcome)
        self._tell_reached()

    def _tell_reached(self) -> None:
        """Let those go on who wait for what is known now."""
        self._reaching, waiting = [], self._reaching
        for end, call in waiting:
            self.when_applied(end, call)

    def _apply_one(self, command: Command) -> Outcome:
        outcome = self.declarations.apply(command)
        for part in outcome.parts or ((command, outcome),):
            self._tell_outcome(*part)
        return outcome

    def _tell_outcome(self, command: Command, outcome: Outcome) -> None:
        """Tell the listener what a command has changed."""
        if isinstance(command, Primaries | PrimariesMoved | Recover):
            self._follow_primaries()
        if outcome.changes:
            self._tell(self.on_topology, outcome.changes)
        if isinstance(command, Set | Delete) and command.kind in SET_SINCE:
            if outcome.has_changed:
                if command.kind == ROOT:
                    self._follow_roots()
                self.on_set()
        elif outcome.has_changed and outcome.declaration is not None:
            match command:
                case Declare():
                    self._tell(self._listener.declared, outcome.declaration)
                case Delete():
                    self._tell(self._listener.deleted, outcome.declaration)
                case _:
                    self._tell(self._listener.moved, outcome.declaration)

    @staticmethod
    def _tell(tell: Callable[[T], None], what: T) -> None:
        """Tell the listener.

        Where its disk fails, what is declared is known nevertheless, and what is left there is
        removed at the next start.
        """
        try:
            tell(what)
        except OSError as error:
            log.error("cannot apply all of the cluster's declarations here: %s", error)

    async def _look_whether_to_keep(self, engine: RaftEngine) -> None:
        """Keep a snapshot where this container leads and enough has come since the last one."""
        if self.next - self._kept < SNAPSHOT_EVERY or not self._service.leads(STREAM):
            return
        await self._keep(engine)

    async def _keep(self, engine: RaftEngine) -> None:
        self._kept, self._kept_level = self.next, self.declarations.level
        offset, write = self.next, self.declarations.writer()
        # There may be a hundred thousand declarations: meanwhile others have their turn.
        data = await asyncio.to_thread(write)
        await engine.save_snapshot(Snapshot(offset, data))
        await engine.trim(offset)

    # -- for people

    @property
    def _problem_now(self) -> str:
        if self._failure is not None:
            return str(self._failure)
        behind = "" if self.is_current else self._problem or self._why_behind
        return behind or (self._identity.problem if self._identity is not None else "")

    @property
    def root(self) -> str:
        """Who is the root, as far as it is known here; empty for nobody.

        Who is disabled may lead for a moment, or where nobody else can, and is none.
        """
        leader = self._leader() or ""
        return "" if leader in self._barred else leader

    async def find_root(self) -> str:
        """Return who is the root; a container without a replica asks those that have one."""
        if self._service.term_of(STREAM):
            return self.root
        asked = (
            self._service.ask(each, partial(GetMembers), MembersAre, KEY, LEADER_TIMEOUT_S)
            for each in self.voters
        )
        found = await asyncio.gather(*asked, return_exceptions=True)
        leaders = [each.leader for each in found if isinstance(each, MembersAre)]
        return next((each for each in leaders if each and each not in self._barred), "")

    def _leader(self) -> str | None:
        return self._service.leader_of(STREAM)

    def member_facts(self, incarnation: int) -> MemberFacts:
        """Return what this container says of itself as a member.

        Args:
            incarnation: Its start, in milliseconds since 1970 (UTC).
        """
        return MemberFacts(
            incarnation=incarnation,
            version=__version__,
            next=self.next,
            digest=self.declarations.digest,
            is_current=self.is_current,
            root=self.root,
            term=self._service.term_of(STREAM),
            time_ms=int(time.time() * 1000),
        )

    def facts(self) -> dict[str, object]:
        """Return what is known, in plain values."""
        identity, primaries = self._identity, self.declarations.primaries
        return {
            "uuid": identity.uuid if identity is not None else "",
            "voters": list(self.voters),
            "moving": primaries is not None and not primaries.is_settled,
            "leader": self.root or None,
            "declarations": len(self.declarations),
            "level": self.declarations.level,
            "supports": dict(sorted(self.declarations.supports.items())),
            "next": self.next,
            "digest": self.declarations.digest,
            "is_current": self.is_current,
            "problem": self._problem_now,
        }


def _named(declaration: Declaration) -> tuple[str, str, str, int]:
    return declaration.kind, declaration.vhost, declaration.name, declaration.number


def _written(command: Command) -> bytes:
    """Return a command's octets, which every member can read: else all of them would stop.

    Raises:
        ValueError: It holds what no command can.
    """
    try:
        data = encode(command)
        decode(data)
    except (Malformed, NotUnderstood, OverflowError, TypeError) as error:
        raise ValueError(str(error)) from error
    return data


def _set_result(future: asyncio.Future[int], end: int) -> None:
    if not future.done():
        future.set_result(end)


def _changes_between(before: Topology, after: Topology) -> list[Change]:
    """Return what has gone, bindings first, and then what has come, bindings last."""
    gone = [Change(each, False) for each in before if not after.has(each)]
    return [*reversed(gone), *(Change(each, True) for each in after if not before.has(each))]


def _follow_nothing(_changes: Sequence[Change]) -> None:
    """Have no topology here."""


def _do_nothing() -> None:
    """Nobody follows what is set."""


def _ignore(_error: NotUnderstood) -> None:
    """Stop nothing."""
