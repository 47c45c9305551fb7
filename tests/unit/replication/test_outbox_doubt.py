"""What an outbox says of a command that it gives up: nothing happened, or perhaps something."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest

from cogwork.plugin.engine.batch import Batch
from cogwork.plugin.engine.contract import Appended
from cogwork.plugin.engine.errors import (
    Busy,
    ConsensusError,
    Malformed,
    NotLeader,
    Unavailable,
    Unknown,
)
from cogwork.plugin.engine.sequencer import Command, Fence, Sequencer, Trim, decode
from cogwork.replication.calls import (
    Failed,
    Place,
    Proposal,
    Refused,
    Results,
    StreamKey,
    failure_of,
)
from cogwork.replication.outbox import OWN_MARK, Outbox
from cogwork.replication.pacing import Pacing

GIVE_UP_S = 10.0
RECORDS = 12


def outbox() -> Outbox:
    ids, numbers = count(), count(1)
    return Outbox(
        StreamKey("orders", 17),
        ("a", "b", "c"),
        lambda: OWN_MARK + bytes([next(ids)]),
        lambda: next(numbers),
        Pacing(answer_timeout_s=0.4, pause_s=0.1, give_up_s=GIVE_UP_S),
    )


def sent(box: Outbox, now_s: float) -> Proposal:
    call = box.next_call(now_s)
    assert call is not None
    return call


def refusal(call: Proposal, error: ConsensusError, *, may_happen: bool = False) -> Refused:
    return Refused(call.number, failure_of(error), may_happen)


def given_up(box: Outbox) -> list[type[object]]:
    return [type(each.result) for each in box.tick(GIVE_UP_S)]


def put(box: Outbox) -> None:
    box.append(Batch.of([b"record"]), None, 0, 0.0)


def test_what_nobody_took_has_not_happened() -> None:
    box = outbox()
    put(box)
    for step in range(20):
        box.answered(refusal(sent(box, step / 4), NotLeader()), step / 4)
    box.undelivered(sent(box, 6.0).number, 6.0)
    box.answered(refusal(sent(box, 7.0), Busy("too much")), 7.0)
    assert given_up(box) == [Unavailable]


def test_what_a_leader_took_that_leads_no_more_is_in_doubt() -> None:
    box = outbox()
    put(box)
    box.answered(refusal(sent(box, 0.0), NotLeader(), may_happen=True), 0.1)
    box.answered(refusal(sent(box, 1.0), NotLeader()), 1.1)
    assert given_up(box) == [Unknown]


def test_what_was_not_answered_is_in_doubt_until_it_is_refused() -> None:
    lost, late = outbox(), outbox()
    for box in (lost, late):
        put(box)
        first = sent(box, 0.0)
        box.tick(1.0)
        box.answered(refusal(sent(box, 1.0), NotLeader()), 1.1)
        if box is late:
            box.answered(refusal(first, NotLeader()), 2.0)
    assert (given_up(lost), given_up(late)) == ([Unknown], [Unavailable])


def test_what_was_never_sent_is_given_up_and_what_was_waits_on() -> None:
    box = outbox()
    put(box)
    put(box)
    call = sent(box, 0.0)
    for token in (1, 2):
        box.append(Batch.of([b"later"]), None, token, 0.0)
    assert box.next_call(0.0) is None, "the first is to be answered before"
    done = box.fail_unsent("it stops")
    assert [(each.token, str(each.result)) for each in done] == [
        (token, str(Unavailable("it stops"))) for token in (1, 2)
    ]
    assert (len(box), box.unsent, box.fail_unsent("it stops")) == (2, False, [])
    box.append(Batch.of([b"last"]), None, 3, 0.0)
    others = Troubled(0)
    assert len(box.answered(others.apply(call), 0.1)) == 2
    (answer,) = box.answered(others.apply(sent(box, 0.1)), 0.2)
    assert (answer.token, type(answer.result)) == (3, Appended), "no number is missing"
    assert others.records == [b"record", b"record", b"last"]


def test_what_nobody_took_is_given_up_before_its_time() -> None:
    box = outbox()
    put(box)
    box.answered(refusal(sent(box, 0.0), NotLeader()), 0.0)
    box.undelivered(sent(box, 1.0).number, 1.0)
    (done,) = box.fail_unsent("it stops")
    assert isinstance(done.result, Unavailable)
    assert len(box) == 0
    put(box)
    (answer,) = box.answered(Troubled(0).apply(sent(box, 2.0)), 2.1)
    assert isinstance(answer.result, Appended)


PLACE = Place(0, 0, is_repeated=False)
EARLY = Failed("OutOfSequence", [1, 2])


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([PLACE], "there are 1 results of 2"),
        ([PLACE, PLACE, PLACE], "there are 3 results of 2"),
        ([PLACE, 7], "the result of Append is 7"),
    ],
)
def test_what_answers_other_batches_is_as_good_as_no_answer(
    results: list[Place | Failed | int], why: str
) -> None:
    box = outbox()
    put(box)
    put(box)
    wrong = sent(box, 0.0)
    with pytest.raises(Malformed, match=why):
        box.answered(Results(wrong.number, results), 0.1)
    assert box.next_call(0.1) is None, "it is not asked again at once"
    assert box.tick(0.5) == []
    again = sent(box, 0.5)
    assert again.commands == wrong.commands
    done = box.answered(Results(again.number, [PLACE, PLACE]), 0.6)
    assert [each.result for each in done] == [Appended(0, 0)] * 2
    assert len(box) == 0


@pytest.mark.parametrize("command", [Fence(), Trim(3)])
@pytest.mark.parametrize("result", [PLACE, EARLY])
def test_what_answers_another_command_is_as_good_as_no_answer(
    command: Command, result: Place | Failed
) -> None:
    box = outbox()
    box.command(command, 0, "token", 0.0)
    with pytest.raises(Malformed, match=f"the result of {type(command).__name__} is "):
        box.answered(Results(sent(box, 0.0).number, [result]), 0.1)
    box.tick(0.5)
    (done,) = box.answered(Results(sent(box, 0.5).number, [4]), 0.6)
    assert done.result == 4


def test_what_is_only_ever_answered_wrongly_is_in_doubt() -> None:
    box = outbox()
    put(box)
    done: list[type[object]] = []
    for step in range(1, 250):
        now_s = step * 0.05
        call = box.next_call(now_s)
        if call is not None:
            with pytest.raises(Malformed):
                box.answered(Results(call.number, []), now_s)
        done += [type(each.result) for each in box.tick(now_s)]
    assert done == [Unknown]


class Troubled:
    """Whoever is asked: refuses, loses calls and answers, is late, leads and then does not."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.records: list[bytes] = []
        self.late: list[Proposal] = []
        self._sequencer = Sequencer()
        kinds = self.chance.sample(
            ("lost", "late", "deposed", "applied"), self.chance.randint(1, 3)
        )
        self._kinds = [*kinds, *["refused"] * self.chance.choice((1, 8, 64))]

    def answer(self, call: Proposal) -> Results | Refused | None:
        """Return an answer, or none; what is late is applied when nobody expects it."""
        match self.chance.choice(self._kinds):
            case "refused":
                return refusal(call, NotLeader())
            case "late":
                self.late.append(call)
            case "deposed":
                self.late.append(call)
                return refusal(call, NotLeader(), may_happen=True)
            case "applied":
                results = self.apply(call)
                return results if self.chance.random() < 0.3 else None
        return None

    def apply(self, call: Proposal) -> Results:
        return Results(call.number, [self._apply(data) for data in call.commands])

    def _apply(self, data: bytes) -> Place | Failed:
        answer, chunk = self._sequencer.apply(decode(data))
        if chunk is not None:
            self.records.extend(bytes(each) for each in chunk.batch.records())
        if isinstance(answer, Appended):
            return Place(answer.epoch, answer.first_offset, answer.is_repeated)
        assert isinstance(answer, ConsensusError)
        return failure_of(answer)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_that_is_said_not_to_have_happened_ever_does(seed: int) -> None:
    box, others = outbox(), Troubled(seed)
    told: dict[Any, object] = {}
    for step in range(400):
        now_s = step * 0.05
        if step % 8 == 0 and step // 8 < RECORDS:
            box.append(Batch.of([b"%d" % (step // 8)]), None, step // 8, now_s)
        call = box.next_call(now_s)
        if call is not None and others.chance.random() < 0.2:
            box.undelivered(call.number, now_s)
        elif call is not None and (answer := others.answer(call)) is not None:
            told |= {each.token: each.result for each in box.answered(answer, now_s)}
        told |= {each.token: each.result for each in box.tick(now_s)}
    for call in others.late:
        others.apply(call)
    assert len(told) == RECORDS
    unhappened = {b"%d" % token for token, each in told.items() if isinstance(each, Unavailable)}
    assert not unhappened & set(others.records)
    assert len(set(others.records)) == len(others.records)
