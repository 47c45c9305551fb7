"""Two ends follow the same tables: each event is sent by one and received by the other."""

from __future__ import annotations

import pytest

from cogwork.amqp.errors import Condition, LocalProtocolError, ProtocolError, Scope
from cogwork.amqp.states import (
    ConnectionState,
    Event,
    LinkState,
    SessionState,
    connection_step,
    link_step,
    session_step,
)

RECEIVED_AS = {
    Event.SEND_HEADER: Event.RECEIVE_HEADER,
    Event.SEND_START: Event.RECEIVE_START,
    Event.SEND_FRAME: Event.RECEIVE_FRAME,
    Event.SEND_STOP: Event.RECEIVE_STOP,
    Event.SEND_FAIL: Event.RECEIVE_STOP,
}


class Ends:
    """Two ends of a connection, a and b."""

    def __init__(self) -> None:
        self.a = self.b = ConnectionState.START

    def a_says(self, event: Event) -> None:
        self.a = connection_step(self.a, event)
        self.b = connection_step(self.b, RECEIVED_AS[event])

    def b_says(self, event: Event) -> None:
        self.b = connection_step(self.b, event)
        self.a = connection_step(self.a, RECEIVED_AS[event])


def opened() -> Ends:
    ends = Ends()
    for event in (Event.SEND_HEADER, Event.SEND_START):
        ends.a_says(event)
        ends.b_says(event)
    return ends


def test_a_connection_opens_talks_and_closes() -> None:
    ends = opened()
    assert ends.a is ends.b is ConnectionState.OPENED
    ends.b_says(Event.SEND_FRAME)
    ends.a_says(Event.SEND_STOP)
    assert (ends.a, ends.b) == (ConnectionState.CLOSE_SENT, ConnectionState.CLOSE_RCVD)
    ends.b_says(Event.SEND_FRAME)
    ends.b_says(Event.SEND_STOP)
    assert ends.a is ends.b is ConnectionState.END


def test_who_closes_with_an_error_discards_what_still_comes() -> None:
    ends = opened()
    ends.a_says(Event.SEND_FAIL)
    ends.b_says(Event.SEND_FRAME)
    assert ends.a is ConnectionState.DISCARDING


def test_a_client_may_pipeline_all_of_a_connection() -> None:
    state = ConnectionState.START
    for event in (Event.SEND_HEADER, Event.SEND_START, Event.SEND_FRAME, Event.SEND_STOP):
        state = connection_step(state, event)
    assert state is ConnectionState.OC_PIPE
    for event in (Event.RECEIVE_HEADER, Event.RECEIVE_START, Event.RECEIVE_STOP):
        state = connection_step(state, event)
    assert state is ConnectionState.END


def test_a_session_begins_and_ends_from_either_side() -> None:
    a = b = SessionState.UNMAPPED
    for event in (Event.SEND_START, Event.RECEIVE_START, Event.SEND_FRAME, Event.SEND_STOP):
        a = session_step(a, event)
    for event in (Event.RECEIVE_START, Event.SEND_START, Event.RECEIVE_FRAME, Event.RECEIVE_STOP):
        b = session_step(b, event)
    assert (a, b) == (SessionState.END_SENT, SessionState.END_RCVD)
    assert session_step(a, Event.RECEIVE_STOP) is SessionState.UNMAPPED
    assert session_step(b, Event.SEND_STOP) is SessionState.UNMAPPED


def test_a_link_may_be_detached_before_the_peer_answers() -> None:
    state = LinkState.DETACHED
    for event in (
        Event.SEND_START,
        Event.SEND_FRAME,
        Event.SEND_STOP,
        Event.RECEIVE_START,
        Event.RECEIVE_FRAME,
        Event.RECEIVE_STOP,
    ):
        state = link_step(state, event)
    assert state is LinkState.DETACHED


def test_what_is_not_listed_is_the_peers_fault_where_it_was_received() -> None:
    with pytest.raises(ProtocolError, match="RECEIVE_FRAME is not allowed in state START") as it:
        connection_step(ConnectionState.START, Event.RECEIVE_FRAME)
    assert it.value.condition == Condition.ILLEGAL_STATE
    with pytest.raises(ProtocolError, match="RECEIVE_START") as it:
        link_step(LinkState.ATTACHED, Event.RECEIVE_START)
    assert it.value.scope is Scope.SESSION


def test_what_is_not_listed_is_our_fault_where_we_send_it() -> None:
    with pytest.raises(LocalProtocolError, match="SEND_START is not allowed in state MAPPED"):
        session_step(SessionState.MAPPED, Event.SEND_START)
