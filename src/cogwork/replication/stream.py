"""A stream as one container has it: its outbox, the replicas to read from, and the one here."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from cogwork.plugin.engine.batch import check
from cogwork.plugin.engine.chunks import decode_chunk
from cogwork.plugin.engine.errors import (
    ConsensusError,
    Malformed,
    NotLeader,
    Unavailable,
    reason_of,
)
from cogwork.plugin.engine.placement import Placement
from cogwork.plugin.engine.retention import Retention
from cogwork.replication.answer_timeout import AnswerTimeout
from cogwork.replication.calls import (
    Read,
    Records,
    Refused,
    Results,
    StreamKey,
    error_of,
)
from cogwork.replication.outbox import OWN_MARK, Outbox

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from cogwork.plugin.engine.batch import Batch, Chunk
    from cogwork.plugin.engine.contract import Appended
    from cogwork.plugin.engine.sequencer import Command
    from cogwork.replication.calls import Answer, Call
    from cogwork.replication.member import Member
    from cogwork.replication.outbox import Done
    from cogwork.replication.service import RaftService

    Told = Callable[[Appended | int | ConsensusError], object]

__all__ = ("Stream", "resolve")

A = TypeVar("A", bound="Answer")
T = TypeVar("T")

BATCH_BYTES_MAX = 8 << 20
"""A batch is one entry of the group's log, and that one record of the write-ahead log."""

ANSWER_TIMEOUT_S = 0.5
"""So long a replica's answer is waited for, beyond what the call itself waits."""

ANSWER_TIMEOUT_MAX_S = 5.0
RECORDS_TIMEOUT_MAX_S = 10.0
"""The same at most, where answers take long: two round trips to ask the leader, or a slow line."""

PAUSE_S = 0.05
GIVE_UP_S = 15.0
"""So long others are asked before a read fails."""


class Stream:
    """One stream.

    Attributes:
        name: Its name.
        number: The group's.
        key: Both, for calls.
        placement: Which containers are to hold a replica, and may.
        retention: How long records are kept.
        housing: Held by who opens the replica here, or has it given up.
        outbox: What is to be appended.
        member: The replica here; None where there is none.
        users: How often it is open here.
        is_deleted: Whether nothing of it is to be left.
        why_over: Says so once it was deleted or everything is closing; else empty.
        outage: Why nobody takes appends, as far as it is known here without a replica; else None.
    """

    def __init__(
        self,
        service: RaftService,
        name: str,
        number: int,
        placement: Placement,
        next_number: Callable[[], int],
    ) -> None:
        self.name = name
        self.number = number
        self.key = StreamKey(name, number)
        self.placement = placement
        self.retention = Retention()
        self.housing = asyncio.Lock()
        self.outbox = Outbox(self.key, placement.holders, new_producer, next_number)
        self.member: Member | None = None
        self.users = 0
        self.is_deleted = False
        self.why_over = ""
        self.outage: str | None = None
        self._service = service
        self._reader = 0
        self._wrong: set[tuple[str, type[object]]] = set()
        self._answer_timeout = AnswerTimeout(ANSWER_TIMEOUT_S, ANSWER_TIMEOUT_MAX_S)
        self._records_timeout = AnswerTimeout(ANSWER_TIMEOUT_S, RECORDS_TIMEOUT_MAX_S)

    # -- commands

    def append(self, batch: Batch, epoch: int | None, told: Told) -> None:
        """Have a batch appended, and somebody told of the answer."""
        check(batch, BATCH_BYTES_MAX)
        self.outbox.append(batch, epoch, told, self._service.now_s())
        self._service.send_soon(self)

    def command(self, command: Command, size_bytes: int, told: Told) -> None:
        """Have any other command carried out, and somebody told of the answer."""
        self.outbox.command(command, size_bytes, told, self._service.now_s())
        self._service.send_soon(self)

    def send(self, now_s: float) -> None:
        """Send what the outbox has for the leader."""
        outbox = self.outbox
        while (call := outbox.next_call(now_s)) is not None:
            target = outbox.target
            assert target is not None
            answered = partial(self._answered, target)
            if not self._service.send_call(target, call, Results, answered):
                outbox.undelivered(call.number, now_s)

    def _answered(self, container: str, answer: Results | Refused) -> None:
        """Take the answer to a call of the outbox, which repeats what was not answered."""
        try:
            done = self.outbox.answered(answer, self._service.now_s())
        except Malformed as problem:  # as good as none
            self._report_wrong(container, Results, problem)
        except Exception as error:  # whoever answers has nothing to do with it
            self.fail(error)
        else:
            if isinstance(answer, Results):
                self._wrong.discard((container, Results))
            settle(done)
        if self.outbox.unsent:
            self._service.send_soon(self)

    def fail(self, error: Exception) -> None:
        """Give up what the outbox has, where that fails; what comes later begins anew."""
        text = f"stream {self.name}: pending appends fail because of an internal error"
        self._service.report(f"{text}: {error!r}")
        context = {"message": text, "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
        settle(self.outbox.fail_all(f"a fault in container {self._service.own}: {error!r:.200}"))

    def release_unsent(self, reason: str) -> None:
        """Give up what the outbox has and was certainly not appended."""
        settle(self.outbox.fail_unsent(reason))

    def lost(self, container: str) -> None:
        """Take note that a container has gone, or is out of reach."""
        try:
            self.outbox.lost(container)
        except Exception as error:  # it is news for the other streams, too
            self.fail(error)

    # -- reading

    async def ask_any(self, make: Callable[[int, StreamKey], Call], kind: type[A]) -> A:
        """Ask a replica, and another where that one does not answer.

        Args:
            make: Makes the call, from its number and the stream's key.
            kind: What answers it.

        Raises:
            ConsensusError: A replica says why not, or none answers.
        """
        return await self._ask_any(make, kind, _itself, self._answer_timeout, 0.0, is_here=True)

    async def read_any(
        self, offset: int, max_bytes: int, wait_s: float, *, is_here: bool = True
    ) -> list[Chunk]:
        """Read chunks from `offset` on from a replica, and another where that one is no help.

        Args:
            offset: From where on.
            max_bytes: About how much.
            wait_s: So long it is waited for records where there are none.
            is_here: Whether the replica here may be asked. If not, it waits for what others have:
                one that has nothing either is no help.

        Raises:
            ConsensusError: A replica says why not, or none answers with what can be read.
        """
        wait_ms = int(wait_s * 1000)
        return await self._ask_any(
            lambda number, key: Read(number, key, offset, max_bytes, wait_ms),
            Records,
            partial(_chunks_from if is_here else _some_chunks_from, offset),
            self._records_timeout,
            wait_s,
            is_here=is_here,
        )

    async def _ask_any(
        self,
        make: Callable[[int, StreamKey], Call],
        kind: type[A],
        take: Callable[[A], T],
        answer_timeout: AnswerTimeout,
        wait_s: float,
        *,
        is_here: bool,
    ) -> T:
        clock_s = self._service.now_s
        give_up_s = clock_s() + GIVE_UP_S + wait_s
        error: ConsensusError = Unavailable("no replica is known")
        while (asked_s := clock_s()) < give_up_s:
            self.demand_open()
            timeout_s = answer_timeout.timeout_s + wait_s
            container = self._next_reader(is_here=is_here)
            try:
                answer = await self._service.ask(container, make, kind, self.key, timeout_s)
                answer_timeout.answered(max(0.0, clock_s() - asked_s - wait_s))
                taken = take(answer)
            except (NotLeader, Unavailable) as refused:
                error = refused
                self.outage = f"no replica answers: {reason_of(error)}"
            except Malformed as problem:
                error = Unavailable(f"container {container}: {problem}")
                self._report_wrong(container, kind, problem)
            else:
                self._wrong.discard((container, kind))
                return taken
            if clock_s() - asked_s >= timeout_s:
                answer_timeout.lapsed()
            self._reader += 1
            await asyncio.sleep(PAUSE_S)
        raise Unavailable(f"no replica answers: {error}")

    def _report_wrong(self, container: str, kind: type[object], problem: Malformed) -> None:
        """Say what a container answers that is of no use, once until it does better."""
        if (container, kind) not in self._wrong:
            self._wrong.add((container, kind))
            self._service.report(f"stream {self.name}: container {container}: {problem}")

    def _next_reader(self, *, is_here: bool) -> str:
        own = self._service.own
        if is_here and self.reader is not None and self._reader % 2 == 0:
            return own
        others = [each for each in self.placement.holders if each != own] or [own]
        return others[self._reader % len(others)]

    @property
    def reader(self) -> Member | None:
        """The replica here, where it has what others have; else None."""
        member = self.member
        return member if member is not None and member.is_current else None

    # -- life

    def place(self, placement: Placement) -> None:
        """Take note of which containers are to hold it."""
        self.placement = placement
        self.outbox.candidates = placement.holders

    async def change_members(self, voters: Sequence[str], learners: Sequence[str]) -> None:
        """Have others hold the replicas; return when they do."""
        await self._service.cluster.change_members(self.number, voters, learners)

    def demand_open(self) -> None:
        """Raise `Unavailable` where the stream is no more."""
        if self.why_over:
            raise Unavailable(self.why_over)

    def release(self) -> None:
        """One user less."""
        self.users -= 1

    def end(self, why: str) -> None:
        """Nothing of it can be used any more."""
        self.why_over = why
        settle(self.outbox.fail_all(why))


def _itself(answer: A) -> A:
    """Return what an answer says that says one thing."""
    return answer


def _chunks_from(offset: int, answer: Records) -> list[Chunk]:
    """Return the chunks of an answer, which follow each other from an offset on.

    Raises:
        Malformed: One is none, or is not the next.
    """
    chunks = [decode_chunk(data) for data in answer.chunks]
    for chunk in chunks:
        if chunk.offset != offset or not chunk.batch.count:
            why = f"{chunk.batch.count} come with offset {chunk.offset}"
            raise Malformed(f"the records from offset {offset} on", why)
        offset = chunk.next_offset
    return chunks


def _some_chunks_from(offset: int, answer: Records) -> list[Chunk]:
    """Return the same, of which there is at least one.

    Raises:
        Malformed: One is none, or is not the next.
        Unavailable: There is none.
    """
    chunks = _chunks_from(offset, answer)
    if not chunks:
        raise Unavailable(f"a replica has not come to offset {offset} either")
    return chunks


def settle(done: Sequence[Done]) -> None:
    """Tell those who wait; what goes wrong there is not for a turn to suffer from."""
    for each in done:
        told = cast("Told", each.token)  # all tokens are such
        try:
            told(each.result)
        except Exception as error:
            context = {"message": f"a fault of {told!r}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


def resolve(future: Future[Any], result: Appended | int | ConsensusError) -> None:
    """Tell those who await."""
    if future.done():
        return
    if isinstance(result, ConsensusError):
        future.set_exception(result)
        future.exception()  # whoever does not await an answer does not want to know
    else:
        future.set_result(result)


def demand(answer: A | Refused) -> A:
    """Return an answer, or raise why there is none."""
    if isinstance(answer, Refused):
        raise error_of(answer.failure)
    return answer


def group_of(options: Mapping[str, object]) -> tuple[int, Placement]:
    """Read the group's number, and who holds replicas.

    Raises:
        ValueError: One is wrong.
    """
    group, replicas = options.get("group"), options.get("replicas")
    if not isinstance(group, int) or group < 1:
        raise ValueError(f"group is a positive number, not {group!r}")
    if isinstance(replicas, Placement):
        return group, replicas
    if not isinstance(replicas, list | tuple) or not replicas:
        raise ValueError(f"replicas is a list of containers, not {replicas!r}")
    founders = [str(each) for each in replicas]
    return group, Placement(founders, founders=founders)


def new_producer() -> bytes:
    """Return a producer id for an outbox."""
    return OWN_MARK + secrets.token_bytes(15)
