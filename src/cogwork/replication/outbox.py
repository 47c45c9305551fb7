"""What a container has to append, until it knows where it is: retries that nobody notices.

Theory of operation. All commands for one stream leave a container in one order, to whoever leads
its replicas. Where that one changes, dies, or an answer does not come, a new *round* begins:
everything unanswered is sent again, in order, to the next candidate. That is sound because every
batch carries a producer and a sequence: the one its application gave it, else one of this outbox's
own. What is in the stream already gets its old place as the answer, and nothing overtakes what was
lost before it, for that would be out of sequence.

A fence has no such number: each copy of it that is applied begins an epoch, and makes that of the
copy before it an old one. So only the answer to the copy that was sent last tells the epoch; the
answer to an earlier one shows that the leader is slow and not gone, and no more copies are sent
while the last one's answer may come. Copies are applied in the order they were sent: a leader takes
calls in order, and what one leader's successor takes comes behind what it took itself. Only a copy
that reaches a leader after it was replaced and elected again could come later; who asked for the
epoch is then fenced, and asks again.

What waits for longer than its time fails, and with it all that was behind it, unless answers come
meanwhile: then a slow line or disk only takes its time for much. The outbox's own batches go on
under a new producer, as the old one's are not all known. A command is in doubt as long as any copy
of it is: one that could not be sent, that was refused by who does not lead, or that came too early,
will not be applied, and one without an answer may be.

Pure: the clock is an argument, sending is up to the owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.errors import (
    Busy,
    ConsensusError,
    InvalidAppend,
    NotLeader,
    OutOfSequence,
    Unavailable,
    Unknown,
)
from cogwork.plugin.engine.sequencer import Append, Fence, encode
from cogwork.replication.answer_timeout import AnswerTimeout
from cogwork.replication.calls import Failed, Place, Proposal, Refused, Results, error_of
from cogwork.replication.in_flight import InFlight, Pending
from cogwork.replication.pacing import Pacing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cogwork.plugin.engine.contract import Appended
    from cogwork.plugin.engine.sequencer import Command
    from cogwork.replication.calls import StreamKey

__all__ = ("OWN_MARK", "Done", "Outbox")

OWN_MARK = b"\x00outbox\x00"
"""What an outbox's own producer ids begin with, and no application's does."""


class Done(msgspec.Struct, frozen=True):
    """A command's end.

    Attributes:
        token: The owner's.
        result: The answer, or why there is none.
    """

    token: object
    result: Appended | int | ConsensusError


class Outbox:
    """The commands of one container for one stream.

    Attributes:
        target: Whom the next call goes to; None while it is to pause.
        candidates: Who may lead.
    """

    def __init__(
        self,
        stream: StreamKey,
        candidates: Sequence[str],
        new_producer: Callable[[], bytes],
        next_number: Callable[[], int],
        pacing: Pacing | None = None,
    ) -> None:
        """Start with nothing to send.

        Args:
            stream: Whose leader the calls are for.
            candidates: Who may lead; the likeliest first.
            new_producer: Makes an id that nobody had before, beginning with `OWN_MARK`.
            next_number: Makes the numbers of calls.
            pacing: How much, and how long.
        """
        self.candidates = list(candidates)
        self._stream = stream
        self._new_producer = new_producer
        self._pacing = pacing or Pacing()
        self._producer = b""
        self._sequence = 0
        self._target = 0
        self._hint: str | None = None
        self._round = 0
        self._paused_until_s = 0.0
        self._next_number = next_number
        self._waiting: list[Pending] = []
        self._next = 0
        self._waiting_bytes = 0
        self._in_flight: dict[int, InFlight] = {}
        self._in_flight_bytes = 0
        self._held: list[Pending] = []
        self._is_proven = False
        self._answered_s = 0.0  # also where it told nothing new
        self._progressed_s = 0.0
        self._answer_timeout = AnswerTimeout(
            self._pacing.answer_timeout_s, self._pacing.answer_timeout_max_s
        )

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def target(self) -> str | None:
        """Whom the next call goes to; None where nobody is known."""
        if self._hint is not None:
            return self._hint
        return self.candidates[self._target % len(self.candidates)] if self.candidates else None

    @property
    def unsent(self) -> bool:
        """Whether there is something that has not been sent in this round."""
        return self._next < len(self._waiting)

    @property
    def awaits_answer(self) -> bool:
        """Whether something is on its way to the present target."""
        return self._in_flight_bytes > 0

    # -- in

    def append(self, batch: Batch, epoch: int | None, token: object, now_s: float) -> None:
        """Take a batch.

        Raises:
            Busy: Too much is unanswered.
            InvalidAppend: Its producer is none that an application may have.
        """
        if batch.producer.startswith(OWN_MARK):
            raise InvalidAppend(f"a producer id does not begin with {OWN_MARK!r}")
        self._demand_room(len(batch.payload))
        is_own = not batch.producer
        if is_own:
            batch = self._own(batch)
        self._add(Append(batch, epoch, 0), token, now_s, len(batch.payload), is_own=is_own)

    def command(self, command: Command, size_bytes: int, token: object, now_s: float) -> None:
        """Take any other command; it may be applied more than once, and the last time counts.

        Raises:
            Busy: Too much is unanswered.
        """
        self._demand_room(size_bytes)
        self._add(command, token, now_s, size_bytes, is_own=False)

    def _demand_room(self, size_bytes: int) -> None:
        room = self._pacing.waiting_bytes_max - self._waiting_bytes
        if self._waiting and size_bytes > room:
            raise Busy(f"{self._waiting_bytes} octets wait to be appended")

    def _own(self, batch: Batch) -> Batch:
        if not self._producer:
            self._producer = self._new_producer()
            self._sequence = 0
        numbered = Batch(batch.payload, batch.count, self._producer, self._sequence)
        self._sequence += batch.count
        return numbered

    def _add(
        self, command: Command, token: object, now_s: float, size_bytes: int, *, is_own: bool
    ) -> None:
        self._waiting.append(
            Pending(token, command, now_s, size_bytes, is_own, data=encode(command))
        )
        self._waiting_bytes += size_bytes

    # -- out

    def next_call(self, now_s: float) -> Proposal | None:
        """Return what is to be sent to `target` now; None where nothing is."""
        if self._next >= len(self._waiting) or now_s < self._paused_until_s or self.target is None:
            return None
        if self._in_flight and self._is_to_wait():
            return None
        in_flight = self._load(now_s)
        if not in_flight.commands:
            return None
        number = self._next_number()
        for pending in in_flight.commands:
            pending.copies += 1
            pending.last_call = number
        self._in_flight[number] = in_flight
        self._in_flight_bytes += in_flight.size_bytes
        return Proposal(number, self._stream, [each.data for each in in_flight.commands])

    def _load(self, now_s: float) -> InFlight:
        """Take what goes in one call; pass over what needs no other copy."""
        in_flight = InFlight(self._round, now_s, 0)
        waiting = self._waiting
        while self._next < len(waiting):
            pending = waiting[self._next]
            if not pending.is_done and not pending.is_held:
                size_bytes = in_flight.size_bytes + len(pending.data)
                if in_flight.commands and size_bytes > self._pacing.call_bytes_max:
                    break
                in_flight.commands.append(pending)
                in_flight.size_bytes = size_bytes
            self._next += 1
        return in_flight

    def _is_to_wait(self) -> bool:
        """Return whether an answer is to come first: too much is under way, or more may join."""
        pacing, in_flight_bytes = self._pacing, self._in_flight_bytes
        if in_flight_bytes >= pacing.in_flight_bytes_max or (
            in_flight_bytes and not self._is_proven
        ):
            return True
        is_little = self._waiting_bytes - in_flight_bytes < pacing.gather_bytes
        return in_flight_bytes >= pacing.busy_bytes and is_little

    # -- answers

    def answered(self, answer: Results | Refused, now_s: float) -> list[Done]:
        """Take an answer; one that nobody waits for changes nothing.

        Raises:
            Malformed: It is none to what was sent; that is sent again, as if none had come.
        """
        in_flight = self._in_flight.get(answer.number)
        if in_flight is None:
            return []
        if isinstance(answer, Results):
            in_flight.demand_results(answer.results)
        del self._in_flight[answer.number]
        if in_flight.round == self._round:
            self._in_flight_bytes -= in_flight.size_bytes
        if isinstance(answer, Refused):
            self._answer_timeout.answered()
            if not answer.may_happen:
                in_flight.take_back()
            return self._refused(in_flight, error_of(answer.failure), now_s)
        self._answer_timeout.answered(now_s - in_flight.sent_s)
        self._answered_s = now_s
        self._is_proven |= in_flight.round == self._round
        done = self._take_results(in_flight, answer)
        if done:
            self._progressed_s = now_s
        self._forget_done()
        if in_flight.round == self._round and self._has_lost_before(answer.number):
            self._begin_round(self.target)
        return done

    def _take_results(self, in_flight: InFlight, answer: Results) -> list[Done]:
        done: list[Done] = []
        for pending, result in zip(in_flight.commands, answer.results, strict=True):
            if pending.is_done:
                continue
            if self._is_early(pending, result, in_flight):
                pending.copies -= 1
                continue
            if isinstance(pending.command, Fence) and answer.number != pending.last_call:
                self._hold(pending)
                continue
            pending.is_done = True
            done.append(Done(pending.token, _told(result)))
        return done

    def _has_lost_before(self, call: int) -> bool:
        """Return whether a call went before this one in its round that has got no answer.

        A leader answers in order: it has not got that one, or its answer was lost.
        """
        for at, in_flight in self._in_flight.items():
            if in_flight.round == self._round:
                return at < call
        return False

    def _hold(self, fence: Pending) -> None:
        """Send no more copies of a fence while the last one's answer may come."""
        if not fence.is_held and fence.last_call in self._in_flight:
            fence.is_held = True
            self._held.append(fence)

    def _release(self, now_s: float) -> None:
        """Have fences sent once more whose last copy has got no answer."""
        lost = [each for each in self._held if self._is_last_lost(each, now_s)]
        for each in lost:
            each.is_held = False
        self._held = [each for each in self._held if each.is_held and not each.is_done]
        if lost:
            self._begin_round(self.target)

    def _is_last_lost(self, fence: Pending, now_s: float) -> bool:
        if fence.is_done:
            return False
        in_flight = self._in_flight.get(fence.last_call)
        return in_flight is None or now_s - in_flight.sent_s >= self._pacing.last_answer_s

    def _is_early(
        self, pending: Pending, result: Place | Failed | int, in_flight: InFlight
    ) -> bool:
        """Return whether a command was refused only because one before it was lost."""
        if not isinstance(result, Failed) or result.kind != OutOfSequence.__name__:
            return False
        if in_flight.round < pending.numbered_in:
            return True  # it says that of a number that the batch has no more
        assert isinstance(pending.command, Append)
        batch = pending.command.batch
        expected = result.numbers[0] if result.numbers else 0
        for other in self._waiting:
            if other is pending:
                break
            command = other.command
            is_before = isinstance(command, Append) and command.batch.producer == batch.producer
            if is_before and not other.is_done:
                if in_flight.round == self._round:
                    self._begin_round(None)
                return True
        if pending.is_own and expected < batch.sequence:
            # The stream has forgotten this producer, and nothing of it is missing.
            self._renew()
            return True
        return False

    def _refused(self, in_flight: InFlight, error: ConsensusError, now_s: float) -> list[Done]:
        if isinstance(error, InvalidAppend):
            done = [Done(each.token, error) for each in in_flight.commands if not each.is_done]
            for each in in_flight.commands:
                each.is_done = True
            self._forget_done()
            return done
        if in_flight.round != self._round:
            return []
        hint = error.hint if isinstance(error, NotLeader) else None
        if hint is not None and hint != self.target:
            self._begin_round(hint)
            return []
        self._paused_until_s = now_s + self._pacing.pause_s
        self._begin_round(self.target if isinstance(error, Busy) else None)
        return []

    def _begin_round(self, hint: str | None) -> None:
        """Have everything unanswered sent again."""
        self._round += 1
        self._in_flight_bytes = 0
        self._is_proven = False
        if hint is None and self.candidates:
            if self._hint is None:
                self._target = (self._target + 1) % len(self.candidates)
            elif self._hint in self.candidates:
                self._target = (self.candidates.index(self._hint) + 1) % len(self.candidates)
        self._hint = hint
        self._next = 0

    def lead(self, leader: str) -> None:
        """Take note of who leads, as somebody who knows has told."""
        if leader != self.target:
            self._begin_round(leader)
            self._paused_until_s = 0.0

    def lost(self, container: str) -> None:
        """Take note that a container has gone, or is out of reach."""
        if container == self.target and self._waiting:
            self._begin_round(None)

    def undelivered(self, number: int, now_s: float) -> None:
        """Take note that a call could not even be sent."""
        in_flight = self._in_flight.pop(number, None)
        if in_flight is None:
            return
        in_flight.take_back()
        if in_flight.round == self._round:
            self._paused_until_s = now_s + self._pacing.pause_s
            self._begin_round(None)

    # -- time

    def tick(self, now_s: float) -> list[Done]:
        """Let time pass: ask others for what has not been answered, gives up what is too old."""
        if self._is_silent(now_s):
            self._answer_timeout.lapsed()
            self._begin_round(None)
        if self._held:
            self._release(now_s)
        limit_s = now_s - self._pacing.give_up_s
        self._in_flight = {
            number: in_flight
            for number, in_flight in self._in_flight.items()
            if in_flight.round == self._round or in_flight.sent_s > limit_s
        }
        if not self._waiting or max(self._waiting[0].since_s, self._progressed_s) > limit_s:
            return []
        return self.fail_all("nobody has answered")

    def _is_silent(self, now_s: float) -> bool:
        """Return whether the next answer is overdue (RFC 6298 §5.3)."""
        oldest_s = min(
            (each.sent_s for each in self._in_flight.values() if each.round == self._round),
            default=now_s,
        )
        return now_s - max(oldest_s, self._answered_s) >= self._answer_timeout.timeout_s

    def fail_unsent(self, reason: str) -> list[Done]:
        """Give up what comes behind all that may have been appended: it never will be."""
        waiting, end = self._waiting, len(self._waiting)
        while end and not waiting[end - 1].copies:
            end -= 1
        unsent = waiting[end:]
        del waiting[end:]
        self._waiting_bytes -= sum(each.size_bytes for each in unsent)
        self._next = min(self._next, end)
        done = [Done(each.token, Unavailable(reason)) for each in unsent if not each.is_done]
        for each in reversed(unsent):
            each.is_done = True
            if each.is_own:  # its number is free again: none of this producer's is behind it
                assert isinstance(each.command, Append)
                self._sequence = each.command.batch.sequence
        return done

    def fail_all(self, reason: str) -> list[Done]:
        """Give up everything: of what any copy is in doubt may have been appended."""
        done = [
            Done(each.token, Unknown(reason) if each.copies else Unavailable(reason))
            for each in self._waiting
            if not each.is_done
        ]
        self._waiting.clear()
        self._in_flight.clear()
        self._held.clear()
        self._waiting_bytes = self._in_flight_bytes = self._next = 0
        self._producer = b""
        return done

    def _renew(self) -> None:
        """Give the outbox's own batches a new producer, from the first one that is not done."""
        self._producer = b""
        for pending in self._waiting:
            if pending.is_own and not pending.is_done:
                command = pending.command
                assert isinstance(command, Append)
                pending.command = Append(self._own(command.batch), command.epoch, command.time_ms)
                pending.data = encode(pending.command)
                pending.numbered_in = self._round + 1
        self._begin_round(self._hint)

    def _forget_done(self) -> None:
        count = 0
        for pending in self._waiting:
            if not pending.is_done:
                break
            self._waiting_bytes -= pending.size_bytes
            count += 1
        if count:
            del self._waiting[:count]
            self._next = max(0, self._next - count)


def _told(result: Place | Failed | int) -> Appended | int | ConsensusError:
    if isinstance(result, Place):
        return result.appended()
    return error_of(result) if isinstance(result, Failed) else result
