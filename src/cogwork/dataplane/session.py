"""A session as Python sees it: begin and end, and the links attached on it (AMQP 1.0 §2.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.amqp.errors import AmqpError, Condition, ProtocolError, Scope
from cogwork.amqp.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Performative,
    Role,
    Transfer,
)
from cogwork.amqp.states import SESSION_OVER, Event, SessionState, session_step
from cogwork.dataplane.link import Ending, Link
from cogwork.dataplane.transport.session_end import Session

if TYPE_CHECKING:
    from cogwork.amqp.types import Symbol
    from cogwork.dataplane.connection import Connection

__all__ = ("SessionEndpoint",)

_WINDOW_MAX = 0x7FFFFFFF
"""What this side announces as its outgoing-window: it promises no limit of its own."""


class SessionEndpoint:
    """One end of a session.

    Attributes:
        connection: The connection it runs on.
        channel: The channel that this side sends on.
        remote_channel: The peer's; None until it began.
        remote: What the peer said in its begin; None until then.
        end: The compiled half.
        links: By this side's handle.
        handle_max: The highest handle that both sides may use.
        state: Where in its life it is.
        ending: How it ended; meaningless while it has not.
    """

    __slots__ = (
        "_by_name",
        "_by_remote_handle",
        "channel",
        "connection",
        "end",
        "ending",
        "handle_max",
        "links",
        "remote",
        "remote_channel",
        "state",
    )

    def __init__(self, connection: Connection, channel: int) -> None:
        self.connection = connection
        self.channel = channel
        self.remote_channel: int | None = None
        self.remote: Begin | None = None
        self.links: dict[int, Link] = {}
        self.handle_max = connection.settings.handle_max
        self.state = SessionState.UNMAPPED
        self.ending = Ending.LOST
        self._by_name: dict[tuple[str, Role], Link] = {}
        self._by_remote_handle: dict[int, Link] = {}
        self.end = Session(
            connection.wire, channel, 0, 0, connection.settings.session_window_frames
        )
        self.end.owner = self
        self.end.narrow(
            connection.wire.core.window_frames(
                connection.settings.session_window_frames, connection.settings.max_frame_size_bytes
            )
        )

    def write(self, performative: Performative) -> None:
        """Send a performative on this session's channel."""
        self.connection.write(self.channel, performative)

    @property
    def is_over(self) -> bool:
        """Whether nothing may be sent on it any more."""
        return self.state in SESSION_OVER or self.connection.is_over

    # -- begin and end

    def begin(self, properties: dict[Symbol, object] | None = None) -> None:
        """Send this side's begin, first or in answer."""
        self.state = session_step(self.state, Event.SEND_START)
        self.write(
            Begin(
                remote_channel=self.remote_channel,
                next_outgoing_id=0,
                incoming_window=self.end.incoming_window,
                outgoing_window=_WINDOW_MAX,
                handle_max=self.connection.settings.handle_max,
                properties=properties,
            )
        )

    def on_begin(self, channel: int, begin: Begin) -> None:
        """Take in the peer's begin."""
        self.state = session_step(self.state, Event.RECEIVE_START)
        self.remote_channel = channel
        self.remote = begin
        self.handle_max = min(self.handle_max, begin.handle_max)
        self.end.peer_began(begin.next_outgoing_id, begin.incoming_window)
        self.connection.wire.map_session(channel, self.end)
        if begin.remote_channel is not None:
            self.connection.host.on_session_begun(self)

    def close(self, error: AmqpError | None = None) -> None:
        """End the session from this side; without effect on one that is over."""
        if self.is_over:
            return
        self.state = session_step(self.state, Event.SEND_FAIL if error else Event.SEND_STOP)
        self.end.write_settlements()
        self._stop_links(Ending.LOST)
        self.end.end()
        self.write(End(error=error))

    def on_end(self, end: End) -> None:
        """Take in the peer's end and answer it."""
        self.state = session_step(self.state, Event.RECEIVE_STOP)
        if self.state is SessionState.END_RCVD and end.error is None:
            self.ending = Ending.SESSION_ENDED
        self.end.write_settlements()
        self._stop_links(self.ending)
        self.end.end()
        if self.state is SessionState.END_RCVD:
            self.state = session_step(self.state, Event.SEND_STOP)
            self.write(End())
        self.connection.forget_session(self)
        self.connection.host.on_session_ended(self, end.error)

    def lose(self, ending: Ending = Ending.LOST) -> None:
        """End with its connection: nothing more is said to the peer."""
        self.ending = ending
        self._stop_links(ending)
        self.end.end()

    def _stop_links(self, ending: Ending) -> None:
        links = list(self.links.values())
        self.links.clear()
        self._by_name.clear()
        self._by_remote_handle.clear()
        for link in links:
            link.lose(ending)
            self.connection.host.on_detached(link, None, closed=False)

    # -- links

    def open_link(self, name: str, role: Role) -> Link:
        """Make a link that this side will attach.

        Args:
            name: Unique for its direction between the two containers.
            role: This side's role.

        Raises:
            ProtocolError: The peer takes no further handle.
        """
        handle = self._free_handle()
        link = Link(self, name, role, handle)
        self.links[handle] = link
        self._by_name[name, role] = link
        return link

    def forget_link(self, link: Link) -> None:
        """Free a link's handles once both sides have detached."""
        self.links.pop(link.handle, None)
        if self._by_name.get((link.name, link.role)) is link:
            del self._by_name[link.name, link.role]
        if link.remote_handle is not None:
            self._by_remote_handle.pop(link.remote_handle, None)
            self.end.map_link(link.remote_handle, None)

    def link_named(self, name: str, role: Role) -> Link | None:
        """Find a link by its name and this side's role."""
        return self._by_name.get((name, role))

    def _free_handle(self) -> int:
        handle = len(self.links)
        if handle in self.links:
            handle = next(free for free in range(len(self.links) + 1) if free not in self.links)
        if handle > self.handle_max:
            raise ProtocolError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"more than {self.handle_max + 1} links on one session",
                Scope.SESSION,
            )
        return handle

    # -- what the peer sends

    def on_performative(self, performative: Performative) -> None:
        """Take in what came on the session's channel and is no transfer, disposition or flow."""
        if self.state in (SessionState.END_SENT, SessionState.DISCARDING) and not isinstance(
            performative, End
        ):
            return
        if isinstance(performative, Attach):
            self._on_attach(performative)
        elif isinstance(performative, Detach):
            self._link_of(performative.handle).on_detach(performative)
        elif isinstance(performative, End):
            self.on_end(performative)
        else:
            assert not isinstance(performative, (Transfer, Flow, Disposition))
            raise ProtocolError(
                Condition.NOT_ALLOWED, f"{performative.NAME} in the middle of a session"
            )

    def _on_attach(self, attach: Attach) -> None:
        if attach.handle > self.connection.settings.handle_max:
            raise ProtocolError(
                Condition.NOT_ALLOWED,
                f"handle {attach.handle} is above the handle-max of "
                f"{self.connection.settings.handle_max}",
            )
        if attach.handle in self._by_remote_handle:
            raise ProtocolError(
                Condition.SESSION_HANDLE_IN_USE,
                f"handle {attach.handle} is in use by another link",
                Scope.SESSION,
            )
        role = Role.SENDER if attach.role is Role.RECEIVER else Role.RECEIVER
        known = self._by_name.get((attach.name, role))
        if known is not None and known.remote is None:
            self._by_remote_handle[attach.handle] = known
            known.on_attach(attach)
            self.connection.host.on_attached(known)
            return
        if known is not None:
            known.detach(
                AmqpError(
                    condition=Condition.LINK_STOLEN,
                    description=f"link {attach.name!r} was attached again",
                )
            )
        link = self.open_link(attach.name, role)
        self._by_remote_handle[attach.handle] = link
        link.on_attach(attach)
        self.connection.host.on_attach(link, attach)

    def _link_of(self, handle: int) -> Link:
        link = self._by_remote_handle.get(handle)
        if link is None:
            raise ProtocolError(
                Condition.SESSION_UNATTACHED_HANDLE,
                f"detach on handle {handle}, where no link is attached",
                Scope.SESSION,
            )
        return link
