"""The replicas of one container: made, found again after a restart, closed, given up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cogwork.amqp.errors import CogworkError
from cogwork.log.errors import LogError
from cogwork.plugin.engine.errors import ConsensusError, Unavailable
from cogwork.replication.files import ReplicaFiles, remove
from cogwork.replication.journal import Journal
from cogwork.replication.member import Member
from cogwork.replication.member_storage import MemberStorage
from cogwork.replication.opening import declare, recover, replica_of
from cogwork.replication.rejoining import floor_of
from cogwork.replication.renewals import Renewals, until_durable, while_kept
from cogwork.replication.replayed import Replayed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cogwork.log.directory import Directory
    from cogwork.log.disk_queue import DiskQueue
    from cogwork.log.record import Record
    from cogwork.log.wal import Wal
    from cogwork.raft.host import RaftHost
    from cogwork.raft.ready import Ready
    from cogwork.replication.service import RaftService
    from cogwork.replication.stream import Stream

__all__ = ("Replicas",)

RETRY_S = 5.0
"""So soon it is tried again to open a replica that could not be: perhaps there was no space."""

VOID_TIMEOUT_S = 5.0


class Replicas:
    """Owned by the service.

    Attributes:
        members: Those that are open, by group.
        renew: Has what a replica keeps that does nothing any more written once more: the log asks.
    """

    def __init__(
        self,
        service: RaftService,
        host: RaftHost,
        *,
        wal: Wal | None,
        queue: DiskQueue | None,
        directory_of: Callable[[int], Directory],
    ) -> None:
        """Start with none yet.

        Args:
            service: The container's.
            host: Has the groups.
            wal: The container's write-ahead log; None where no replica can be.
            queue: The way to the disk.
            directory_of: Opens the directory of a group.
        """
        self.members: dict[int, Member] = {}
        self._service = service
        self._host = host
        self._wal = wal
        self._queue = queue
        self._directory_of = directory_of
        self._replayed: dict[int, Replayed] = {}
        self._housing: set[asyncio.Task[None]] = set()
        self._stopped: dict[int, Member] = {}
        self._refused: set[int] = set()
        self._looks: dict[Stream, asyncio.Event] = {}  # set to have it looked again at once
        self._renewals = Renewals(wal, self._renewal_of)
        self.renew = self._renewals.ask

    def replay(self, record: Record) -> None:
        """Take what the write-ahead log holds of a group, before its stream is opened.

        Raises:
            Malformed: It is no record of a group.
        """
        self._replayed.setdefault(record.group, Replayed()).take(record)

    @property
    def unopened(self) -> list[int]:
        """The groups that the write-ahead log speaks of and nobody has opened."""
        return list(self._replayed)

    async def house(self, stream: Stream) -> None:
        """Open the replica here or give it up, as the stream's placement says.

        Raises:
            ValueError: There is no data directory.
            ConsensusError: What is kept of it cannot be used, or the stream has gone meanwhile.
            LogError: What is kept of it cannot be used.
            OSError: The directory cannot be used.
        """
        async with stream.housing:
            if stream.why_over:
                return
            is_wanted = self._service.own in stream.placement.holders
            if is_wanted and stream.number in self._stopped:
                raise Unavailable("it has stopped by a fault: start the container anew")
            if is_wanted and stream.member is None:
                await self._open(stream)
            elif not is_wanted:
                self.give_up(stream)
                if stream.number in self._refused:  # it is damaged, say
                    self.discard(stream.number)
        self._service.keep_moving(stream)

    def house_soon(self, stream: Stream) -> None:
        """Have that done, and report what is wrong; try again until it is done."""
        if stream in self._looks:
            self._looks[stream].set()
            return
        self._looks[stream] = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._house_or_report(stream))
        self._housing.add(task)
        task.add_done_callback(self._housing.discard)

    async def _house_or_report(self, stream: Stream) -> None:
        told, look = "", self._looks[stream]
        try:
            while (text := await self._problem_of(stream)) or look.is_set():
                if text not in ("", told):
                    self._service.report(text)
                    told = text
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S):
                        await look.wait()
                look.clear()
        finally:
            del self._looks[stream]

    async def _problem_of(self, stream: Stream) -> str:
        try:
            await self.house(stream)
        except Exception as error:  # whatever it is, the stream is to have its replica again
            known = isinstance(error, (CogworkError, ValueError, OSError))
            reason = str(error) if known else repr(error)
            return f"stream {stream.name}: cannot open the replica here: {reason}"
        return ""

    def close(self, streams: Iterable[Stream]) -> None:
        """Open none any more, and end these streams, with their replicas."""
        for task in self._housing:
            task.cancel()
        self._renewals.close()
        for stream in streams:
            try:
                stream.end("the container is stopping")
                self.end(stream)
            except Exception as error:  # the others are to be closed
                self._tell(f"stream {stream.name}: cannot close the replica here", error)

    async def _open(self, stream: Stream) -> None:
        try:
            member = await self._made(stream)
        except BaseException:
            self._refused.add(stream.number)
            if stream.is_deleted:
                self.discard(stream.number)
            raise
        member.retention = stream.retention
        stream.member = member
        self._service.on_replica_changed(stream.name)
        if stream.why_over:
            self.end(stream)
            raise Unavailable(stream.why_over)

    async def _made(self, stream: Stream) -> Member:
        service, number = self._service, stream.number
        if self._wal is None or self._queue is None:
            raise ValueError(
                f"container {service.own} is to hold a replica of {stream.name!r:.80}, and has no "
                "data directory: start it with --data DIR"
            )
        directory = self._directory_of(number)

        def report(text: str) -> None:
            service.report(f"stream {stream.name}: {text}")

        try:
            files = ReplicaFiles(directory, self._queue)
            void = partial(self._void, number, self._wal)
            rejoin = partial(self._rejoin, stream)
            declared = await declare(stream, service.own, files, self._queue, void, rejoin=rejoin)
            journal = Journal(self._wal, number)
            # It stays until the member stands: one that is refused forgets nothing by that.
            replayed = self._replayed.get(number) or Replayed()
            storage = MemberStorage(journal, files, report)
            kept = recover(replayed, journal, storage, files, declared.voters)
            kept = replace(kept, floor=max(stream.placement.floor, declared.floor))
            group = self._host.open(number, kept, service.now_s())
            try:
                replica = replica_of(files, group, report)
            except BaseException:
                self._host.close(number)
                raise
        except BaseException:
            directory.close()
            raise
        self._replayed.pop(number, None)
        self._refused.discard(number)
        member = Member(service, stream, group=group, journal=journal, replica=replica, files=files)
        self.members[number] = member
        return member

    async def _rejoin(self, stream: Stream) -> tuple[int, int] | None:
        """Return the floor of a replica whose past has gone with the container's disk, if so."""
        if not self._service.has_lost_past(stream.number):
            return None
        return await floor_of(self._service, stream)

    async def _void(self, number: int, wal: Wal) -> None:
        """Have the log say for good that what it has of a group is of one that was given up."""
        self._replayed.pop(number, None)
        try:
            Journal(wal, number).forget()
            async with asyncio.timeout(VOID_TIMEOUT_S):
                await until_durable(wal)
        except LogError as error:
            raise Unavailable(str(error)) from error
        except TimeoutError:
            raise Unavailable("the write-ahead log does not get to the disk") from None

    def take_all(
        self, groups: Sequence[tuple[int, Ready]], faults: Sequence[tuple[int, Exception]]
    ) -> None:
        """Have each replica do what its group wants done; stop those whose group is at fault."""
        for number, ready in groups:
            self.take(number, ready)
        for number, error in faults:
            self.stop(number, error)

    def take(self, group: int, ready: Ready) -> None:
        """Have a replica do what its group wants done.

        One that fails at it stops, until the container starts anew: it may have left something out,
        and must not go on from there. What its disk has is sound, and others go on without it.
        """
        member = self.members.get(group)
        if member is None:
            return
        try:
            member.take(ready)
        except Exception as error:
            self.stop(group, error)

    def stop(self, group: int, error: Exception) -> None:
        """Stop a replica that cannot go on, and say why."""
        member = self.members.get(group)
        if member is None:
            return
        self._stopped[group] = self._close(member.stream, member)
        member.journal.stop()  # what has not been written by now was not told to anybody
        text = f"stream {member.name}: the replica here stops until the container restarts"
        self._tell(text, error)

    def _renewal_of(self, group: int) -> Iterator[None] | None:
        """Return what writes once more what is kept of a replica that does nothing any more."""
        if group in self._stopped:
            return while_kept(self._stopped, group, self._stopped[group].journal.renew())
        replayed = self._replayed.get(group) if group in self._refused else None
        if replayed is None or self._wal is None:
            return None
        return while_kept(self._replayed, group, replayed.renew(Journal(self._wal, group)))

    def _tell(self, text: str, error: Exception) -> None:
        self._service.report(f"{text}: {error!r}")
        context = {"message": text, "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)

    def look_to_trim(self) -> None:
        """Have each replica look for what is too old, and for what is to be sealed."""
        for group, member in list(self.members.items()):
            try:
                member.look_to_trim()
                member.look_whether_to_seal()
            except Exception as error:  # the turn goes on for the others
                self.stop(group, error)

    def look_whether_to_step_back(self) -> None:
        """Have others lead where this container should not: an attempt may have come to nothing."""
        if not self._host.may_lead:
            self.step_back()

    def step_back(self) -> None:
        """Have others lead, where this container does; a replica that fails at it stops."""
        for group, member in list(self.members.items()):
            try:
                leadership = member.group.leadership
                is_alone = len(member.group.membership.voters) < 2
                if leadership is not None and leadership.transfer is None and not is_alone:
                    self._host.transfer(group, None, self._service.now_s())
            except (ConsensusError, ValueError):  # nobody else may lead, or it is under way
                pass
            except Exception as error:  # the others are to be handed over
                self.stop(group, error)

    def end(self, stream: Stream) -> None:
        """Close a stream's replica, and remove it where the stream is no more."""
        if stream.is_deleted:
            self.give_up(stream)
        elif stream.number in self._stopped:
            self._stopped.pop(stream.number).files.close()
        elif stream.member is not None:
            member = self._close(stream, stream.member)
            group = member.group
            with suppress(LogError):  # it is a hint only
                member.journal.settle(min(group.commit, group.durable_index))
            member.files.close()

    def give_up(self, stream: Stream) -> None:
        """Close a stream's replica, and remove all that it has kept."""
        member = self._stopped.pop(stream.number, None)
        if stream.member is not None:  # else it is being opened; who does that ends it
            member = self._close(stream, stream.member)
        if member is not None:
            member.journal.drop()
            member.files.remove()

    def _close(self, stream: Stream, member: Member) -> Member:
        stream.member = None
        del self.members[member.number]
        self._host.close(member.number)
        member.close()
        self._service.on_replica_changed(stream.name)
        return member

    def discard(self, group: int) -> None:
        """Remove what is left of a group; one that is open stays."""
        if self._wal is None or group in self.members or group in self._stopped:
            return
        if self._replayed.pop(group, None) is not None:
            Journal(self._wal, group).drop()
        self._refused.discard(group)
        remove(self._directory_of(group))
