"""The server's end of a connection: lets a consumer or a replier be the sink of another process.

So the generator is measured against itself, and a raw relay carries the same bytes as a broker.
"""

from __future__ import annotations

import socket
from pathlib import Path

from cogwork.amqp.frames import AMQP_HEADER, SASL_HEADER
from cogwork.amqp.performatives import Attach, Begin, Open, Role
from cogwork.amqp.sasl import ANONYMOUS, SaslCode, SaslMechanisms, SaslOutcome
from cogwork.amqp.terminus import Source
from cogwork.bench.peer import TIMEOUT_S, WINDOW, Link, Peer
from cogwork.bench.stream import MAX_FRAME_SIZE
from cogwork.io.tcp_options import set_tcp_options
from cogwork.tls.contexts import TlsFiles, server_context

__all__ = ("AcceptedPeer", "accept", "listen")


class AcceptedPeer(Peer):
    """A connection that the other end opened."""

    def accept_anyone(self) -> None:
        """Pass the SASL layer."""
        self.read_header(SASL_HEADER)
        self.write(SASL_HEADER)
        self.send_sasl(SaslMechanisms(sasl_server_mechanisms=(ANONYMOUS,)))
        self.receive_sasl()
        self.send_sasl(SaslOutcome(code=SaslCode.OK))

    def accept_session(self) -> None:
        """Open connection and session."""
        self.read_header(AMQP_HEADER)
        self.write(AMQP_HEADER)
        self.take_open(self.expect(Open))
        self.send([Open(container_id="sink", max_frame_size=MAX_FRAME_SIZE, channel_max=0)])
        self.window = self.expect(Begin).incoming_window
        self.send(
            [
                Begin(
                    remote_channel=0,
                    next_outgoing_id=0,
                    incoming_window=WINDOW,
                    outgoing_window=WINDOW,
                )
            ]
        )

    def accept_link(self) -> tuple[Role, Link]:
        """Answer an attach; return our role and the link."""
        attach = self.expect(Attach)
        role = Role.RECEIVER if attach.role is Role.SENDER else Role.SENDER
        source = attach.source or Source()
        if source.dynamic:
            source = Source(address="reply", dynamic=True)
        handle = self.take_handle()
        answer = Attach(
            name=attach.name,
            handle=handle,
            role=role,
            source=source,
            target=attach.target,
            initial_delivery_count=0 if role is Role.SENDER else None,
        )
        self.send([answer])
        return role, Link(handle, attach.handle, attach.initial_delivery_count or 0)


def listen(port: int = 0) -> socket.socket:
    """Return a listening socket on the loopback interface; 0 takes a free port."""
    return socket.create_server(("127.0.0.1", port))


def accept(server: socket.socket, certificate_file: str | None = None) -> AcceptedPeer:
    """Take one connection and open its session.

    Args:
        server: The listening socket.
        certificate_file: Certificate and key, for TLS.
    """
    connected, _ = server.accept()
    connected.settimeout(TIMEOUT_S)
    set_tcp_options(connected)
    if certificate_file is not None:
        context = server_context(TlsFiles(Path(certificate_file)))
        connected = context.wrap_socket(connected, server_side=True)
    peer = AcceptedPeer(connected)
    peer.accept_anyone()
    peer.accept_session()
    return peer
