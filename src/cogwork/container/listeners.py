"""The container's listening sockets, and the layers of what they accept."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.io.listener import Listener
from cogwork.io.pump import READ_BYTES, SocketPump, StreamPump
from cogwork.io.stream import StackedStream
from cogwork.io.tls import ServerTls, TlsFiles, common_name
from cogwork.io.tls_stream import RECORD_BYTES, TlsStream
from cogwork.io.websocket import WebSocketStream

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from cogwork.container.clients import ClientContext
    from cogwork.container.container import Container
    from cogwork.container.settings import Listen, Tls
    from cogwork.io.stream import ByteStream

__all__ = ("Listeners",)


class Listeners:
    """Opens, reloads and closes listeners. Owned by the container."""

    def __init__(self, container: Container) -> None:
        """Listens nowhere yet.

        Args:
            container: Gets the connections.
        """
        self._container = container
        self._open: list[tuple[Listen, Listener, ServerTls | None]] = []
        self._scratch = bytearray(READ_BYTES + RECORD_BYTES)

    def open(self, listens: Iterable[Listen]) -> None:
        """Opens a listener for each; closes all of them again where one fails.

        Raises:
            ListenError: A port is taken.
            TlsFilesError: A certificate cannot be used.
        """
        try:
            for listen in listens:
                tls = ServerTls(_files_of(listen.tls)) if listen.tls is not None else None
                listener = Listener(listen.host, listen.port, partial(self._accept, listen, tls))
                self._open.append((listen, listener, tls))
        except Exception:
            self.close()
            raise

    @property
    def urls(self) -> list[str]:
        """Where it listens, with the ports that were given."""
        return [
            f"{listen.transport}://{_bracketed(listen.host)}:{listener.port}"
            for listen, listener, _ in self._open
        ]

    def reload_certificates(self) -> list[str]:
        """Reads every certificate again; returns what went wrong, where the old one stays."""
        problems = []
        for listen, _, tls in self._open:
            if tls is None:
                continue
            try:
                tls.reload()
            except Exception as error:  # reported; the old certificate stays
                problems.append(f"{listen.endpoint}: {error}")
        return problems

    def close(self) -> None:
        """Accepts no more."""
        for _, listener, _ in self._open:
            listener.close()
        self._open.clear()

    def _accept(self, listen: Listen, tls: ServerTls | None, sock: socket.socket) -> None:
        accepted = self._container.accept(listen, sock)
        if accepted is None:
            return
        connection, client = accepted
        if listen.transport == "amqp":
            SocketPump(connection, sock)
            return
        stream = self._stream_of(listen, tls, client)
        StreamPump(connection, sock, stream, self._scratch)

    def _stream_of(
        self, listen: Listen, tls: ServerTls | None, client: ClientContext
    ) -> ByteStream:
        encrypted = None
        if tls is not None:
            encrypted = TlsStream(tls.context, server_side=True, scratch=self._scratch)
            client.name_of_certificate = lambda: common_name(encrypted.peer_certificate)
        if listen.transport in ("ws", "wss"):
            web = WebSocketStream(server_side=True, origins=tuple(listen.origins))
            return web if encrypted is None else StackedStream(encrypted, web)
        assert encrypted is not None
        return encrypted


def _files_of(tls: Tls) -> TlsFiles:
    return TlsFiles(
        certificate=Path(tls.certificate),
        key=Path(tls.key) if tls.key else None,
        client_ca=Path(tls.client_ca) if tls.client_ca else None,
        require_client_certificate=tls.require_client_certificate,
    )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
