"""The outbox: order and retries, whatever becomes of calls and answers."""

from __future__ import annotations

import random
from itertools import count

import pytest

from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import (
    Busy,
    ConsensusError,
    InvalidAppend,
    NotLeader,
    OutOfSequence,
    SequenceReused,
    Unavailable,
    Unknown,
)
from cogwork.plugin.engine.sequencer import Append, Fence, Sequencer, decode
from cogwork.replication.calls import (
    Failed,
    Place,
    Proposal,
    Refused,
    Results,
    StreamKey,
    failure_of,
)
from cogwork.replication.outbox import OWN_MARK, Done, Outbox
from cogwork.replication.pacing import Pacing

PACING = Pacing(
    waiting_bytes_max=1_000,
    call_bytes_max=200,
    in_flight_bytes_max=400,
    answer_timeout_s=1.0,
    pause_s=0.1,
    give_up_s=10.0,
)


def outbox(*candidates: str, pacing: Pacing = PACING) -> Outbox:
    ids, numbers = count(), count(1)
    return Outbox(
        StreamKey("orders", 17),
        candidates or ("a", "b", "c"),
        lambda: OWN_MARK + bytes([next(ids)]),
        lambda: next(numbers),
        pacing,
    )


class Leader:
    """Applies what it is sent."""

    def __init__(self) -> None:
        self.sequencer = Sequencer()
        self.records: list[bytes] = []

    def apply(self, call: Proposal) -> Results:
        results: list[Place | Failed | int] = []
        for data in call.commands:
            answer, chunk = self.sequencer.apply(decode(data))
            if chunk is not None:
                self.records += chunk.batch.records()
            if isinstance(answer, Appended):
                results.append(Place(answer.epoch, answer.first_offset, answer.is_repeated))
            else:
                results.append(failure_of(answer) if isinstance(answer, ConsensusError) else answer)
        return Results(call.number, results)


def call_of(box: Outbox, now_s: float = 0.0) -> Proposal:
    call = box.next_call(now_s)
    assert call is not None
    return call


def proven(box: Outbox, leader: Leader) -> None:
    """Have one record answered: more than one call goes only to who answers."""
    box.append(batch(b"0"), None, 0, 0.0)
    assert len(box.answered(leader.apply(call_of(box)), 0.0)) == 1


def batch(*records: bytes, producer: bytes = b"", sequence: int = 0) -> Batch:
    return Batch.of(records, producer, sequence)


def test_commands_leave_in_order_and_their_answers_find_them() -> None:
    box, leader = outbox(), Leader()
    box.append(batch(b"1", b"2"), None, "first", 0.0)
    box.append(batch(b"3"), None, "second", 0.0)
    assert box.target == "a"
    done = box.answered(leader.apply(call_of(box)), 0.1)
    assert done == [Done("first", Appended(0, 0)), Done("second", Appended(0, 2))]
    assert leader.records == [b"1", b"2", b"3"]
    assert len(box) == 0
    assert box.next_call(0.1) is None


def test_while_much_is_under_way_little_waits_for_an_answer_and_then_goes_together() -> None:
    pacing = Pacing(busy_bytes=1_500, gather_bytes=4_000)
    box, leader = outbox(pacing=pacing), Leader()
    proven(box, leader)
    box.append(batch(bytes(1_000)), None, 1, 0.0)
    first = call_of(box)
    box.append(batch(bytes(1_000)), None, 2, 0.0)
    second = call_of(box)
    assert [len(each.commands) for each in (first, second)] == [1, 1], "little is under way"
    for token in (3, 4):
        box.append(batch(bytes(1_000)), None, token, 0.0)
        assert box.next_call(0.0) is None
    assert len(box.answered(leader.apply(first), 0.1)) == 1
    third = call_of(box, 0.1)
    assert len(third.commands) == 2
    box.append(batch(bytes(1_000)), None, 5, 0.2)
    assert box.next_call(0.2) is None
    box.append(batch(bytes(4_000)), None, 6, 0.2)
    assert len(call_of(box, 0.2).commands) == 2, "much goes at once"


def test_what_waits_for_an_answer_goes_when_none_comes() -> None:
    box = outbox(pacing=Pacing(busy_bytes=100, gather_bytes=300))
    box.append(batch(bytes(200)), None, 1, 0.0)
    lost = call_of(box)
    box.append(batch(b"1"), None, 2, 0.0)
    assert box.next_call(0.3) is None
    assert box.tick(0.4) == []
    assert call_of(box, 0.4).commands[:1] == lost.commands
    assert box.unsent == 0


def test_an_unanswered_call_goes_to_the_next_one_and_nothing_is_twice() -> None:
    box, leader = outbox(), Leader()
    proven(box, leader)
    box.append(batch(b"1"), None, 1, 0.0)
    leader.apply(call_of(box))  # the answer is lost
    box.append(batch(b"2"), None, 2, 0.5)
    lost = call_of(box, 0.5)  # and so is this call
    assert box.tick(0.9) == []
    assert box.target == "a"
    assert box.tick(1.0) == []
    assert box.target == "b"
    done = box.answered(leader.apply(call_of(box, 1.0)), 1.1)
    assert done == [Done(1, Appended(0, 1, is_repeated=True)), Done(2, Appended(0, 2))]
    assert leader.records == [b"0", b"1", b"2"]
    assert box.answered(leader.apply(lost), 1.2) == []


def test_it_follows_the_hint_of_who_does_not_lead() -> None:
    box, leader = outbox(), Leader()
    box.append(batch(b"1"), None, 1, 0.0)
    call = call_of(box)
    assert box.answered(Refused(call.number, failure_of(NotLeader("z"))), 0.1) == []
    assert box.target == "z"
    assert box.answered(leader.apply(call_of(box, 0.1)), 0.2) == [Done(1, Appended(0, 0))]


def test_without_a_hint_it_pauses_and_asks_the_next_one() -> None:
    box = outbox()
    box.append(batch(b"1"), None, 1, 0.0)
    call = call_of(box)
    box.answered(Refused(call.number, failure_of(NotLeader(None))), 0.0)
    assert box.target == "b"
    assert box.next_call(0.05) is None
    assert call_of(box, 0.1).commands == call.commands


def test_a_call_that_was_lost_before_another_is_sent_again_first() -> None:
    box, leader = outbox(), Leader()
    proven(box, leader)
    box.append(batch(b"1"), None, 1, 0.0)
    call_of(box)  # lost
    box.append(batch(b"2"), None, 2, 0.0)
    assert box.answered(leader.apply(call_of(box)), 0.1) == []
    done = box.answered(leader.apply(call_of(box, 0.1)), 0.2)
    assert done == [Done(1, Appended(0, 1)), Done(2, Appended(0, 2))]
    assert leader.records == [b"0", b"1", b"2"]


def test_an_application_that_lost_count_is_told() -> None:
    box, leader = outbox(), Leader()
    box.append(batch(b"x", producer=b"p", sequence=5), None, 1, 0.0)
    box.append(batch(b"1", producer=b"q"), None, 2, 0.0)
    box.append(batch(b"2", producer=b"q"), None, 3, 0.0)
    done = box.answered(leader.apply(call_of(box)), 0.1)
    assert [each.token for each in done] == [1, 2, 3]
    assert isinstance(done[0].result, OutOfSequence)
    assert isinstance(done[2].result, SequenceReused)
    assert len(box) == 0


def test_where_the_stream_has_forgotten_its_producer_it_takes_a_new_one() -> None:
    box, leader = outbox(), Leader()
    box.append(batch(b"1"), None, 1, 0.0)
    box.answered(leader.apply(call_of(box)), 0.1)
    leader.sequencer.producers = Sequencer().producers
    box.append(batch(b"2"), None, 2, 0.2)
    assert box.answered(leader.apply(call_of(box, 0.2)), 0.3) == []
    assert box.answered(leader.apply(call_of(box, 0.3)), 0.4) == [Done(2, Appended(0, 1))]
    assert leader.records == [b"1", b"2"]


def test_a_late_answer_to_what_has_a_new_number_does_not_count() -> None:
    """The stream has forgotten the producer of a batch that was sent twice."""
    box, leader = outbox(), Leader()
    proven(box, leader)
    leader.sequencer.producers = Sequencer().producers
    box.append(batch(b"1"), None, 1, 0.2)
    first = call_of(box, 0.2)
    box.tick(2.0)
    second = call_of(box, 2.0)
    assert box.answered(leader.apply(first), 2.1) == []
    third = call_of(box, 2.1)
    assert box.answered(leader.apply(second), 2.2) == []
    assert box.answered(leader.apply(third), 2.3) == [Done(1, Appended(0, 1))]
    assert leader.records == [b"0", b"1"]


def test_what_waits_too_long_fails_and_all_behind_it() -> None:
    box = outbox()
    box.append(batch(b"1" * 150), None, 1, 0.0)
    call_of(box)
    box.append(batch(b"2" * 150), None, 2, 5.0)
    done = box.tick(10.0)
    assert [(each.token, type(each.result)) for each in done] == [(1, Unknown), (2, Unavailable)]
    assert len(box) == 0
    box.append(batch(b"3"), None, 3, 10.0)
    command = decode(call_of(box, 10.0).commands[0])
    assert isinstance(command, Append)
    assert (command.batch.producer, command.batch.sequence) == (OWN_MARK + b"\x01", 0)


def test_it_says_when_it_is_full_but_takes_one_of_any_size() -> None:
    box = outbox()
    box.append(batch(b"1" * 2_000), None, 1, 0.0)
    with pytest.raises(Busy, match="octets wait"):
        box.append(batch(b"2"), None, 2, 0.0)


def test_calls_are_bounded_and_so_is_what_is_on_its_way() -> None:
    box = outbox()
    proven(box, Leader())
    for number in range(9):
        box.append(batch(b"x" * 80), None, number, 0.0)
    sizes = []
    while (call := box.next_call(0.0)) is not None:
        sizes.append(len(call.commands))
    assert sizes[0] == 1
    assert 3 <= sum(sizes) < 9
    assert box.unsent


def test_an_applications_producer_is_not_taken_for_its_own() -> None:
    with pytest.raises(InvalidAppend, match="does not begin with"):
        outbox().append(batch(b"1", producer=OWN_MARK + b"p"), None, 1, 0.0)


def test_other_commands_are_tried_like_batches() -> None:
    box, leader = outbox(), Leader()
    box.command(Fence(), 0, "fence", 0.0)
    assert box.answered(leader.apply(call_of(box)), 0.1) == [Done("fence", 1)]


def test_a_fence_that_was_sent_twice_is_answered_with_the_epoch_that_stays() -> None:
    box, leader = outbox("a"), Leader()
    box.command(Fence(), 0, "fence", 0.0)
    late = leader.apply(call_of(box))
    box.tick(1.1)
    again = call_of(box, 1.1)
    assert box.answered(late, 1.2) == [], "the other copy makes this epoch an old one"
    box.tick(2.2)
    assert box.next_call(2.2) is None, "a leader that is slow gets no copy after the other"
    assert box.answered(leader.apply(again), 2.3) == [Done("fence", 2)]
    assert leader.sequencer.epoch == 2


def test_a_fence_whose_last_copy_is_lost_is_sent_once_more() -> None:
    box, leader = outbox("a"), Leader()
    box.command(Fence(), 0, "fence", 0.0)
    late = leader.apply(call_of(box))
    box.tick(1.1)
    call_of(box, 1.1)
    box.answered(late, 1.2)
    box.tick(1.1 + PACING.last_answer_s)
    assert box.answered(leader.apply(call_of(box, 7.0)), 7.1) == [Done("fence", 2)]


def test_a_fence_whose_last_copy_is_refused_is_sent_once_more() -> None:
    box, leader = outbox("a"), Leader()
    box.command(Fence(), 0, "fence", 0.0)
    late = leader.apply(call_of(box))
    box.tick(1.1)
    again = call_of(box, 1.1)
    box.answered(late, 1.2)
    box.lead("b")
    assert box.next_call(1.3) is None
    box.answered(Refused(again.number, failure_of(NotLeader("b"))), 1.4)
    box.tick(1.5)
    assert box.target == "b"
    assert box.answered(leader.apply(call_of(box, 1.5)), 1.6) == [Done("fence", 2)]


def test_what_is_done_is_not_sent_again_with_what_was_before_it() -> None:
    box, leader = outbox("a"), Leader()
    proven(box, leader)
    box.append(batch(b"1"), None, "append", 0.0)
    lost = call_of(box)
    box.command(Fence(), 0, "fence", 0.0)
    assert box.answered(leader.apply(call_of(box)), 0.1) == [Done("fence", 1)]
    box.tick(1.1)
    assert call_of(box, 1.1).commands == lost.commands


def test_news_of_a_leader_have_everything_sent_there() -> None:
    box = outbox()
    box.append(batch(b"1"), None, 1, 0.0)
    first = call_of(box)
    box.lead("c")
    assert box.target == "c"
    assert call_of(box, 0.1).commands == first.commands
    box.lead("c")
    assert box.next_call(0.2) is None


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_lost_each_record_is_there_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    pacing = Pacing(
        answer_timeout_s=0.3,
        give_up_s=1e9,
        busy_bytes=chance.choice([1, 100, 1 << 20]),
        gather_bytes=chance.choice([5, 1000]),
    )
    box, leader = outbox(pacing=pacing), Leader()
    sent = [b"%d" % number for number in range(40)]
    waiting = list(sent)
    late: list[Results | Refused] = []
    done: list[Done] = []
    now_s = 0.0
    while len(done) < len(sent):
        now_s += 0.05
        if waiting and chance.random() < 0.6:
            record = waiting.pop(0)
            box.append(batch(record), None, record, now_s)
        call = box.next_call(now_s)
        if call is not None and chance.random() > 0.3:
            if box.target == "b":
                late.append(leader.apply(call))
            else:
                hint = chance.choice(["b", None, "a"])
                late.append(Refused(call.number, failure_of(NotLeader(hint))))
        if late and chance.random() < 0.7:
            answer = late.pop(chance.randrange(len(late)) if chance.random() < 0.3 else 0)
            if chance.random() < 0.8:
                done += box.answered(answer, now_s)
        done += box.tick(now_s)
        assert now_s < 500, seed
    assert leader.records == sent, seed
    offsets = {each.token: each.result.first_offset for each in done}  # type: ignore[union-attr]  # none has failed
    assert len(offsets) == len(done), seed
    assert all(offsets[record] in (number, None) for number, record in enumerate(sent)), seed


def test_a_leader_that_is_busy_is_asked_again_after_a_pause() -> None:
    box = outbox()
    box.append(batch(b"1"), None, 1, 0.0)
    call = call_of(box)
    box.answered(Refused(call.number, failure_of(Busy("much"))), 0.0)
    assert box.target == "a"
    assert box.next_call(0.05) is None
    assert call_of(box, 0.1).commands == call.commands


def test_a_leader_that_is_lost_is_not_waited_for() -> None:
    box = outbox()
    box.append(batch(b"1"), None, 1, 0.0)
    call = call_of(box)
    box.lost("b")
    assert box.next_call(0.1) is None
    box.lost("a")
    assert box.target == "b"
    assert call_of(box, 0.2).commands == call.commands


def copies_to_a_slow_leader(takes_s: float, count: int) -> tuple[int, int]:
    """Append batches where each answer takes a while; return how many came, and how often."""
    box, leader = outbox("a"), Leader()
    sent: list[tuple[float, Proposal]] = []
    commands = done = 0
    for tick in range(int(count * takes_s * 40)):
        now_s = tick / 20
        if not len(box):
            box.append(batch(b"%d" % tick), None, tick, now_s)
        while sent and now_s >= sent[0][0] + takes_s:
            done += len(box.answered(leader.apply(sent.pop(0)[1]), now_s))
        done += len(box.tick(now_s))
        while (call := box.next_call(now_s)) is not None:
            sent.append((now_s, call))
            commands += len(call.commands)
    return done, commands


def test_a_leader_that_takes_its_time_gets_things_once() -> None:
    done, commands = copies_to_a_slow_leader(4.0, 20)
    assert done >= 20
    assert commands <= done + 4, "at first it is not known how slow it is"


def test_nobody_who_is_silent_is_asked_ever_so_often() -> None:
    box = outbox()
    box.append(batch(b"1"), None, 1, 0.0)
    asked: list[float] = []
    for tick in range(int(9.9 * 20)):
        box.tick(tick / 20)
        if box.next_call(tick / 20) is not None:
            asked.append(tick / 20)
    assert asked == [0.0, 1.0, 3.0, 7.0], "with twice the time for each"


def test_one_who_answers_at_all_is_waited_for_no_longer_than_at_first() -> None:
    box = outbox()
    box.append(batch(b"1"), None, 1, 0.0)
    call_of(box)
    box.tick(1.0)
    call = call_of(box, 1.0)
    assert box.answered(Refused(call.number, failure_of(NotLeader("c"))), 1.1) == []
    assert box.target == "c"
    call_of(box, 1.2)
    box.tick(2.2)
    assert call_of(box, 2.2)


def test_what_waits_behind_much_does_not_fail_while_answers_come() -> None:
    pacing = Pacing(call_bytes_max=200, answer_timeout_s=6.0, answer_timeout_max_s=6.0)
    box, leader = outbox("a", pacing=pacing), Leader()
    for number in range(10):
        box.append(batch(b"%02d" % number + bytes(90)), None, number, 0.0)
    sent: list[tuple[float, Proposal]] = []
    done: list[Done] = []
    for tick in range(20 * 60):
        now_s = tick / 20
        while (call := box.next_call(now_s)) is not None:
            sent.append((now_s, call))
        if sent and tick % 80 == 79:
            done += box.answered(leader.apply(sent.pop(0)[1]), now_s)
        done += box.tick(now_s)
    assert [each.token for each in done] == list(range(10))
    assert all(isinstance(each.result, Appended) for each in done)


def test_one_who_has_not_answered_gets_one_call_at_a_time() -> None:
    box, leader = outbox(), Leader()
    for number in range(9):
        box.append(batch(b"x" * 80), None, number, 0.0)
    first = call_of(box)
    assert box.next_call(0.0) is None
    box.answered(leader.apply(first), 0.1)
    assert call_of(box, 0.1)
    assert call_of(box, 0.1), "it answers: it gets what there is"
    box.tick(1.2)
    assert box.target == "b"
    assert call_of(box, 1.2)
    assert box.next_call(1.2) is None, "another one perhaps does not lead"


def test_what_a_leader_answers_shows_what_it_has_not_got() -> None:
    box, leader = outbox(), Leader()
    proven(box, leader)
    mine = [batch(bytes([each]), producer=bytes([each]), sequence=0) for each in (1, 2)]
    for number, each in enumerate(mine, 1):
        box.append(each, None, number, 0.0)
        call = call_of(box)
    assert box.answered(leader.apply(call), 0.1) == [Done(2, Appended(0, 1))]
    assert box.answered(leader.apply(call_of(box, 0.1)), 0.2) == [Done(1, Appended(0, 2))]
    assert box.target == "a"
