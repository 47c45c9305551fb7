"""Answers that wait for credit, and notes about parts that are said once there is some."""

from __future__ import annotations

import secrets
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from cogwork.dataplane.message.messages import Message
from cogwork.gateways.zeromq.answers import Answers
from cogwork.gateways.zeromq.asked import AskedStreams
from cogwork.gateways.zeromq.calls import Call, Calls
from cogwork.gateways.zeromq.codec import JSON
from cogwork.gateways.zeromq.kind import Kind
from cogwork.gateways.zeromq.session import Session
from cogwork.gateways.zeromq.translation import CREDIT, HEARTBEAT, MORE

if TYPE_CHECKING:
    from cogwork.gateways.zeromq.account import Account
    from cogwork.gateways.zeromq.lane import Lane
    from cogwork.gateways.zeromq.registration import Registration
    from cogwork.plugin.door import Door, Sender


class Credited:
    """A door with as much credit as a test says."""

    size_bytes_max = 0

    def __init__(self) -> None:
        self.credit = 0
        self.posted: list[object] = []

    def post(self, message: bytes, token: int, *, is_settled: bool) -> bool:
        assert (token, is_settled) == (0, True)
        if not self.credit:
            return False
        self.credit -= 1
        self.posted.append(Message.decode(message).body)
        return True

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


class Held:
    """Stands where a registration does."""

    is_held_back = False

    def hold_back(self) -> None:
        self.is_held_back = True

    def go_on(self) -> None:
        self.is_held_back = False


class Stage:
    """Answers, with doors that tests give credit."""

    def __init__(self) -> None:
        self.doors: list[Credited] = []
        self.flushes_due = 0
        self.had_room = 0
        self.answers = Answers(self._open, self._flush_soon, self._on_credit)
        self.answers.open()

    def _open(self, _sender: Sender) -> Door:
        self.doors.append(Credited())
        return cast("Door", self.doors[-1])

    def _flush_soon(self) -> None:
        self.flushes_due += 1

    def _on_credit(self) -> None:
        self.had_room += 1

    def give(self, held: Held, body: int) -> None:
        message = Message.value(body, to="queue/a")
        self.answers.give(cast("Registration", held), lambda: self.answers.post(message))


def test_whose_answers_wait_is_held_back_until_all_have_gone() -> None:
    stage = Stage()
    first, second = Held(), Held()
    stage.doors[0].credit = 1
    stage.give(first, 0)
    assert not first.is_held_back
    stage.give(first, 1)
    stage.give(second, 2)
    assert not stage.answers.say(Message.value(3))
    stage.doors[0].credit = 1
    stage.answers.on_credit()
    assert (first.is_held_back, second.is_held_back, stage.had_room) == (True, True, 0)
    stage.doors[0].credit = 1
    stage.answers.on_credit()
    assert (first.is_held_back, second.is_held_back, stage.had_room) == (False, False, 1)
    assert stage.doors[0].posted == [0, 1, 2]
    assert not stage.answers


def test_what_waits_goes_by_the_next_door() -> None:
    stage = Stage()
    stage.give(Held(), 1)
    stage.answers.on_closed()
    stage.doors[1].credit = 5
    stage.answers.on_credit()
    assert stage.doors[1].posted == [1]
    stage.answers.close()
    stage.answers.on_closed()
    assert len(stage.doors) == 2


class Streamed:
    """Streams of one client, whose notes are said while a test lets them be."""

    def __init__(self) -> None:
        self.can_say = True
        self.said: list[tuple[str | None, object]] = []
        self.calls = Calls(
            lambda _message, _number: None,
            lambda _address: False,
            lambda: 100.0,
            secrets.token_bytes,
        )
        self.asked = AskedStreams(self.calls, lambda _message: None, self._say, lambda: 100.0)
        self.session = Session(
            b"me", cast("Account", None), JSON, lease_s=30.0, name="", slow=set()
        )

    def _say(self, message: Message) -> bool:
        assert message.subject == MORE
        if self.can_say:
            self.said.append((message.to, message.properties[CREDIT]))
        return self.can_say

    def begin(self, name: str) -> Call:
        number = self.calls.next_number()
        message = Message(None, to="unicast/a")
        message.correlation_id = reply_id = self.calls.new_name()
        lane = cast("Lane", SimpleNamespace(kind=Kind.ROUNDROBIN))
        call = Call(
            number,
            self.session,
            lane,
            name,
            "unicast/a",
            message,
            200.0,
            has_reply=True,
            name=reply_id,
        )
        self.asked.begin(call, self.session, 60.0, 1)
        self.calls.begin(call)
        return call

    def hear(self, call: Call) -> None:
        beat = Message.value(None, subject=HEARTBEAT)
        beat.reply_to, beat.correlation_id = f"_reply/{call.id}", call.message.correlation_id
        assert self.asked.take(beat)


def test_more_is_said_once_it_can_be_with_the_newest_credit() -> None:
    streamed = Streamed()
    calls = [streamed.begin(name) for name in ("a", "b", "c")]
    for call in calls:
        streamed.hear(call)
    streamed.can_say = False
    for credit in range(2, 9):
        for name in ("a", "b"):
            streamed.asked.more(streamed.session, name, credit)
    streamed.asked.cancel(streamed.session, "b")
    streamed.asked.say_more()
    assert streamed.said == []
    streamed.can_say = True
    streamed.asked.say_more()
    streamed.asked.say_more()
    assert streamed.said == [("_reply/a", 8)]


def test_more_waits_until_it_is_known_where_it_goes() -> None:
    streamed = Streamed()
    call = streamed.begin("a")
    streamed.asked.more(streamed.session, "a", 5)
    assert streamed.said == []
    streamed.hear(call)
    streamed.hear(call)
    assert streamed.said == [("_reply/a", 5)]
