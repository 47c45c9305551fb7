"""The gateway: three sockets on one side, doors into the container on the other.

Theory of operation. A batch of messages from a socket is worked through verb by verb; what it
posts, settles and grants goes through the door once, at its end, and what that brings back, perhaps
to the same client, is handed on at once. Nothing blocks: a client that takes nothing has its
messages wait within bounds. A door without credit has the sockets read nothing, for a moment: what
it waits for may be what a client has to say. Then all is read, and what is new refused, until there
is credit. What clients answer goes by a door of its own, and never waits for what they are asked.

Where clients have keys, each is a user, and the users have doors of their own (`Account`). The
sockets are everybody's then: they are read on, and what is new of who has no credit is refused.
"""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING

import zmq

from cogwork.amqp.errors import CogworkError
from cogwork.gateways.zeromq.account import Account
from cogwork.gateways.zeromq.codec import codec_of
from cogwork.gateways.zeromq.curve import Gatekeeper, clients_in, keys_of
from cogwork.gateways.zeromq.desk import Desk
from cogwork.gateways.zeromq.errors import Code, Fault
from cogwork.gateways.zeromq.frames import MAGIC, parse
from cogwork.gateways.zeromq.kind import Kind
from cogwork.gateways.zeromq.lane import Lane
from cogwork.gateways.zeromq.options import demand_identities, options_of
from cogwork.gateways.zeromq.sessions import Sessions
from cogwork.plugin.gateway import GatewayListenError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cogwork.plugin.gateway import GatewayContext, Watch

__all__ = ("ZeromqGateway",)

NO_USER = "curve_clients_dir: {0}: no [[user]] is named {1!r}: this key is refused"

PATIENCE_S = 0.1
"""So long the sockets are not read where the mesh takes nothing."""

log = logging.getLogger("cogwork")


class ZeromqGateway:
    """Peer2Peer, RoundRobin and PubSub for programs that speak ZeroMQ."""

    def __init__(self, context: GatewayContext) -> None:
        """Read the options; do not listen yet.

        Args:
            context: What the container gives.

        Raises:
            GatewayOptionError: An option is wrong.
        """
        self._context = context
        self.options = options_of(context.options)
        demand_identities(self.options, context.is_user, has_users=context.has_users)
        self._keys = keys_of(self.options)
        self.sessions = Sessions(context.token, self.options.lease_s, self.options.sessions)
        self._accounts: dict[str | None, Account] = {}
        self._desk = Desk(self)
        self._lanes: dict[Kind, Lane] = {}
        self._zmq: zmq.Context[zmq.Socket[bytes]] | None = None
        self._gatekeeper: Gatekeeper | None = None
        self._watch: Watch | None = None
        self._is_flush_due = False
        self._paused_s: float | None = None
        self.faults = 0
        self.refused_keys = 0
        self.is_draining = False

    # -- life

    def start(self, watch: Watch) -> None:
        """Open the sockets.

        Raises:
            GatewayListenError: One of them cannot be bound.
        """
        self._zmq = zmq.Context()
        self._zmq.max_sockets = 16
        self._watch = watch
        if self._keys is None or self._keys.clients is None:
            self._account_of(self.options.user)
        else:
            self._warn_of_keys(self._keys.clients)
        if self._keys is not None:
            is_user, warn = self._context.is_user, self._context.warn
            self._gatekeeper = Gatekeeper(self._zmq, self._keys, is_user, self._on_refused, warn)
            self._gatekeeper.start(watch)
        for kind in Kind:
            endpoint = self.options.endpoints[kind]
            try:
                self._lanes[kind] = Lane(self._zmq, kind, endpoint, self.options, self._keys)
            except zmq.ZMQError as error:
                text = f"gateway.zeromq.{kind}: {endpoint}: {error}"
                raise GatewayListenError(text) from error
        for lane in self._lanes.values():
            lane.start(watch, self._on_message, self.flush)

    def _warn_of_keys(self, clients: Mapping[bytes, str]) -> None:
        """Tell of what is configured and lets nobody in."""
        for name in sorted(clients.values()):
            if not self._context.is_user(name):
                self._context.warn(NO_USER.format(f"{name}.key", name))
        if self.options.user is not None:
            self._context.warn(
                f"user: {self.options.user!r} is not used: with curve_clients_dir each client is "
                "the user that its key file is named for"
            )

    def _account_of(self, user: str | None) -> Account:
        """Return what a user's clients share; their first one has it made."""
        account = self._accounts.get(user)
        if account is None:
            account = self._accounts[user] = Account(
                self._context,
                user,
                flush_soon=self._flush_soon,
                on_starved=self._on_starved,
                on_credit=self._on_credit,
                on_closed=self._on_closed,
            )
            account.open()
        return account

    def _on_refused(self, peer: str) -> None:
        self.refused_keys += 1
        self._context.note_refusal(peer, "its key is no user's")

    def tick(self, now_s: float) -> None:
        """Let time pass: leases, deadlines, clients that were slow."""
        self.sessions.tick(now_s)
        for account in list(self._accounts.values()):
            account.tick(now_s)
        if self._paused_s is not None and now_s - self._paused_s >= PATIENCE_S:
            self._resume()
        for lane in self._lanes.values():
            lane.look_again()
        self.flush()

    def reload(self) -> None:
        """Read clients' keys again; sessions by keys that are gone end.

        Raises:
            GatewayOptionError: A file holds no key, or two hold the same; the old ones hold on.
        """
        keys = self._keys
        if keys is None or keys.clients is None:
            return
        old, new = keys.clients, clients_in(self.options.curve_clients_dir) or {}
        keys.clients = new
        if old != new:
            self._warn_of_keys(new)
        for name in {name for key, name in old.items() if new.get(key) != name}:
            if name in self._accounts:
                self._end(self._accounts[name])

    def drain(self) -> None:
        """Take on nothing new."""
        self.is_draining = True

    @property
    def is_drained(self) -> bool:
        """Whether nothing is under way."""
        are_drained = all(each.is_drained for each in self._accounts.values())
        return are_drained and not self.sessions.outstanding

    def close(self) -> None:
        """Close everything."""
        self.is_draining = True
        for session in self.sessions:
            self.sessions.end(session)
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
        if self._gatekeeper is not None:
            self._gatekeeper.close()
            self._gatekeeper = None
        if self._zmq is not None:
            self._zmq.destroy(linger=0)
            self._zmq = None
        for account in self._accounts.values():
            account.close()
        self._accounts.clear()

    @property
    def endpoints(self) -> list[str]:
        """Where it listens."""
        return [lane.endpoint for lane in self._lanes.values()]

    def status(self) -> Mapping[str, object]:
        """Return figures."""
        registrations = [
            (kind, address) for session in self.sessions for kind, address in session.registrations
        ]
        accounts = self._accounts.values()
        return {
            "kinds": {kind.value: lane.endpoint for kind, lane in self._lanes.items()},
            "curve": self._keys is not None,
            "sessions": len(self.sessions),
            "sessions_begun": self.sessions.begun,
            "sessions_expired": self.sessions.expired,
            "registrations": len(registrations),
            "queues": len(set(registrations)),
            "under_way": sum(len(each.calls) for each in accounts),
            "streams": sum(len(each.asked) + len(each.served) for each in accounts),
            "outstanding": self.sessions.outstanding,
            "timed_out": sum(each.calls.timed_out for each in accounts),
            "received": sum(lane.received for lane in self._lanes.values()),
            "sent": sum(lane.sent for lane in self._lanes.values()),
            "dropped": self.sessions.dropped + sum(each.dropped for each in self.sessions),
            "faults": self.faults,
            "refused_keys": self.refused_keys,
        }

    # -- what comes from clients

    def _on_message(self, lane: Lane, parts: list[bytes], key: str | None) -> None:
        route = parts[0]
        try:
            frames = parse(parts[1:])
            account = self._account_of(self.options.user if key is None else self._user_of(key))
            again = partial(self._on_message, lane, parts, key)
            if frames.verb != b"HELLO" or not account.holds(again):
                self._desk.handle(lane, route, frames, account)
        except Fault as fault:
            self._blame(lane, route, parts, fault)
        except CogworkError as error:  # a value that AMQP cannot hold
            self._blame(lane, route, parts, Fault(Code.BAD_MESSAGE, str(error)))
        except Exception:  # whatever it is, what others have sent is still to be read
            log.exception("gateway zeromq: cannot handle a client's message")
            self._blame(lane, route, parts, Fault(Code.FAILED, "a fault in the container"))

    def _user_of(self, key: str) -> str:
        """Return whose key it is now.

        Raises:
            Fault: It was a user's when its connection was made, and is not any more.
        """
        user = None if self._keys is None else self._keys.user_of(key.encode())
        if user is None:
            raise Fault(Code.NOT_ALLOWED, "this key may not connect any more")
        return user

    def _blame(self, lane: Lane, route: bytes, parts: list[bytes], fault: Fault) -> None:
        """Tell a client what was wrong with its message; it goes on."""
        self.faults += 1
        delimiter: list[bytes] = []
        if len(parts) > 2 and not parts[1]:  # of a REQ socket, which reads nothing without it
            delimiter.append(b"")
            parts = [route, *parts[2:]]
        head = parts[4] if len(parts) > 4 else b""
        codec = codec_of(head)
        header: dict[str, object] = {"code": fault.code.value, "text": fault.text}
        with contextlib.suppress(Fault):
            if (request := parse(parts[1:]).id) is not None:
                header["id"] = request
        session = parts[3] if len(parts) > 3 else b""
        answer = [MAGIC, b"ERROR", session[:64], codec.encode_header(header)]
        lane.send([route, *delimiter, *answer])

    def flush(self) -> None:
        """End a batch."""
        for account in list(self._accounts.values()):
            account.flush()

    def _flush_soon(self) -> None:
        """Flush in the next turn: one door may have something to send as another is at work."""
        if not self._is_flush_due and self._watch is not None:
            self._is_flush_due = True
            self._watch.call_soon(self._flush_due)

    def _flush_due(self) -> None:
        self._is_flush_due = False
        self.flush()

    def lane(self, kind: Kind) -> Lane:
        """Return a kind's socket."""
        return self._lanes[kind]

    @property
    def now_s(self) -> float:
        """The monotonic clock."""
        return self._context.now_s()

    @property
    def container_id(self) -> str:
        """Whose gateway it is."""
        return self._context.container_id

    # -- credit, and its lack

    def _on_starved(self) -> None:
        """Read nothing for a moment, unless others than who has no credit would wait as well."""
        if len(self._accounts) > 1:
            return
        self._paused_s = self.now_s
        for lane in self._lanes.values():
            lane.pause()

    def _on_credit(self) -> None:
        if self._paused_s is not None:
            self._resume()

    def _resume(self) -> None:
        self._paused_s = None
        for lane in self._lanes.values():
            lane.resume()

    def _on_closed(self, account: Account) -> None:
        """A door was closed from the other side; it stays so where there is no such user now."""
        if account.user is not None and not self._context.is_user(account.user):
            self._end(account)
        elif self._zmq is None:
            account.close()

    def _end(self, account: Account) -> None:
        """End the sessions of a user's clients, and what they have under way."""
        for session in self.sessions:
            if session.account is account:
                self.sessions.end(session)
        if self._accounts.get(account.user) is account:
            del self._accounts[account.user]
        account.close()
