"""TLS as a layer without I/O: the library's state machine between two memory buffers.

Theory of operation. `ssl.SSLObject` reads records from one memory BIO and writes records to
another. Ciphertext is written to the first in one piece and decrypted record by record straight
into a scratch buffer that belongs to the caller or to this stream, so a big chunk costs one copy
in, the decryption, and no Python object for a record. What is sent before the handshake is
complete waits and leaves with its last message.
"""

from __future__ import annotations

import ssl

from cogwork.amqp.frames import TLS_HEADER
from cogwork.io.end_point import end_point
from cogwork.io.stream import Chunk, StreamError

__all__ = ("RECORD_BYTES", "TlsError", "TlsStream")

RECORD_BYTES = 16 * 1024
"""The most plaintext that one record carries (RFC 8446 §5.1)."""

_REASONS = {
    "CERTIFICATE_VERIFY_FAILED": "the peer's certificate is not trusted",
    "HTTP_REQUEST": "the peer speaks plain HTTP, not TLS",
    "NO_SHARED_CIPHER": "the peer offers no cipher that is allowed here",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "a client certificate is required and the peer has none",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer refuses our certificate as malformed",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the peer refuses our certificate as revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer refuses our certificate as expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer refuses our certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer requires a client certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the peer refuses our TLS versions",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust the authority of our certificate",
    "UNSUPPORTED_PROTOCOL": "the peer speaks only TLS older than is allowed here",
    "WRONG_VERSION_NUMBER": "the peer does not speak TLS",
}


AMQP = b"AMQP"
"""With what plain AMQP begins (AMQP 1.0 §2.2)."""


class TlsError(StreamError):
    """The handshake failed, or a record was forged or malformed."""


class TlsStream:
    """One TLS connection, either role."""

    def __init__(
        self,
        context: ssl.SSLContext,
        server_side: bool,
        server_hostname: str | None = None,
        scratch: bytearray | None = None,
    ) -> None:
        """Start the handshake; a client's first message can be taken at once.

        Args:
            context: Certificates and rules; see `cogwork.io.tls`.
            server_side: Whether this is the accepting side.
            server_hostname: Client only: the name the server's certificate must hold.
            scratch: Where `feed` puts plaintext. Streams of one event loop can share one, even
                the one that ciphertext was read into, as what `feed` returned is used up before
                the next call. None: a buffer of its own.
        """
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side, server_hostname
        )
        self._plaintext = memoryview(bytearray() if scratch is None else scratch)
        self._shares_scratch = scratch is not None
        self._waiting = bytearray()
        self._closed = False
        self._first = b""
        self._is_server = server_side
        self.ready = False
        self.peer_closed = False
        if not server_side:
            self._shake_hands()

    @property
    def peer_certificate(self) -> dict[str, object]:
        """What the library tells of the peer's verified certificate; empty without one."""
        return dict(self._object.getpeercert() or {}) if self.ready else {}

    @property
    def server_end_point(self) -> bytes | None:
        """Client: the channel binding `tls-server-end-point`; None before the handshake is over."""
        return end_point(self._object.getpeercert(binary_form=True)) if self.ready else None

    @property
    def version(self) -> str | None:
        """The protocol version in use, such as `TLSv1.3`."""
        return self._object.version()

    def feed(self, data: Chunk) -> Chunk:
        """Take ciphertext and return the plaintext in it, a view valid until the next call.

        Args:
            data: Bytes from the network, cut anywhere.

        Returns:
            Plaintext, as far as records are complete.

        Raises:
            TlsError: The handshake failed or a record was bad.
        """
        if self.peer_closed:
            return b""
        self._incoming.write(data)
        if not self.ready:
            if len(self._first) < len(AMQP):
                self._first += bytes(data[: len(AMQP)])
            if not self._shake_hands():
                return b""
        return self._decrypt()

    def send(self, data: Chunk) -> None:
        """Encrypt `data`; before the handshake is complete it waits."""
        if not self.ready:
            self._waiting += data
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._object.write(rest) :]

    def take_output(self) -> bytes:
        """Return the ciphertext to be sent."""
        return self._outgoing.read()

    @property
    def _is_plain_client(self) -> bool:
        """Whether a client speaks AMQP without TLS here."""
        return self._is_server and self._first[: len(AMQP)] == AMQP

    def close(self) -> None:
        """Say close_notify (RFC 8446 §6.1), unless the handshake never came so far."""
        if self._closed or not self.ready:
            return
        self._closed = True
        try:
            self._object.unwrap()
        except ssl.SSLError:
            # The peer's own close_notify is still missing, or it broke the stream before: either
            # way ours is in the output if it could be said at all, and no one waits for more.
            return

    def _shake_hands(self) -> bool:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            if self._is_plain_client:
                self._outgoing.read()  # an alert says nothing to one that speaks no TLS
                self._outgoing.write(TLS_HEADER)  # TLS is wanted first (AMQP 1.0 §5.2)
                raise TlsError("the peer speaks plain AMQP, and TLS is required here") from error
            raise TlsError(f"TLS handshake failed: {_explain(error)}") from error
        self.ready = True
        self.send(bytes(self._waiting))
        self._waiting.clear()
        return True

    def _decrypt(self) -> memoryview:
        incoming, stream, view = self._incoming, self._object, self._plaintext
        filled = 0
        try:
            while incoming.pending or stream.pending():
                if filled == len(view):
                    view = self._grow(view)
                count: int = stream.read(len(view), view[filled:])  # type: ignore[assignment] # with a buffer it returns the count
                if count == 0:  # close_notify; what follows it is never read
                    raise ssl.SSLZeroReturnError
                filled += count
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.peer_closed = True
        except ssl.SSLError as error:
            raise TlsError(f"TLS failed: {_explain(error)}") from error
        return view[:filled]

    def _grow(self, view: memoryview) -> memoryview:
        """Move to a bigger buffer; one that is shared stays as it is for the next call."""
        needed = len(view) + self._incoming.pending + RECORD_BYTES
        grown = memoryview(bytearray(needed))
        grown[: len(view)] = view
        if not self._shares_scratch:
            self._plaintext = grown
        return grown


def _explain(error: ssl.SSLError) -> str:
    """Put the library's reason into words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not trusted: {error.verify_message}"
    reason = error.reason or ""
    return _REASONS.get(reason, reason.lower().replace("_", " ") or str(error))
