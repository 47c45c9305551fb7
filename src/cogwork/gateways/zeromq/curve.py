"""CURVE: the gateway's keys, and who may connect (ZeroMQ RFC 26 and 27)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import zmq
import zmq.auth

from cogwork.gateways.zeromq.errors import GatewayOptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cogwork.gateways.zeromq.options import Options
    from cogwork.plugin.gateway import Watch

__all__ = ("Gatekeeper", "Keys", "clients_in", "keys_of")

ZAP_ENDPOINT = "inproc://zeromq.zap.01"
"""Where a context asks who may connect."""

DOMAIN = b"cogwork"
REQUEST_FRAMES_LEAST = 7
BATCH_MAX = 64


class Keys:
    """The gateway's key pair, and the public keys of those who may connect.

    Attributes:
        public: What clients need to know.
        secret: What nobody else may.
        clients: Who has which key, in Z85; None lets in everybody who knows `public`, as nobody.
    """

    def __init__(self, public: bytes, secret: bytes, clients: Mapping[bytes, str] | None) -> None:
        self.public = public
        self.secret = secret
        self.clients = clients

    def __repr__(self) -> str:
        """Show nothing secret: reprs end in logs."""
        return f"Keys({self.public!r})"

    def user_of(self, key: bytes) -> str | None:
        """Return whose public key it is; None for a stranger's."""
        return None if self.clients is None else self.clients.get(key)

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        """Have a socket speak CURVE, and nothing else."""
        socket.curve_server = True
        socket.curve_publickey = self.public
        socket.curve_secretkey = self.secret
        socket.zap_domain = DOMAIN


def keys_of(options: Options) -> Keys | None:
    """Read the keys; None where none are configured.

    Raises:
        GatewayOptionError: A file cannot be read, or holds no key.
    """
    if options.curve_secret_file is None:
        return None
    public, secret = _read(options.curve_secret_file)
    if secret is None:
        raise GatewayOptionError(f"{options.curve_secret_file}: no secret key in it")
    return Keys(public, secret, clients_in(options.curve_clients_dir))


def _read(path: str) -> tuple[bytes, bytes | None]:
    try:
        return zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise GatewayOptionError(f"{path}: no CURVE certificate: {error}") from error


def clients_in(directory: str | None) -> dict[bytes, str] | None:
    """Read who has which key: the file's name without `.key` is the user's.

    Raises:
        GatewayOptionError: A file holds no key, or two hold the same.
    """
    if directory is None:
        return None
    if not Path(directory).is_dir():
        raise GatewayOptionError(f"curve_clients_dir: {directory} is no directory")
    clients: dict[bytes, str] = {}
    for path in sorted(Path(directory).glob("*.key")):
        key, name = _read(str(path))[0], path.name.removesuffix(".key")
        if key in clients:
            text = (
                f"curve_clients_dir: {path}: has the same key as {clients[key]}.key: whose is it?"
            )
            raise GatewayOptionError(text)
        clients[key] = name
    return clients


def _address_in(request: list[bytes]) -> str:
    """Return where a client is, as a request of RFC 27 says."""
    return request[3].decode(errors="replace") if len(request) > 3 else ""


class Gatekeeper:
    """Answers a context's questions who may connect, on the event loop."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        keys: Keys,
        is_user: Callable[[str], bool],
        on_refused: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        """Take questions from now on.

        Args:
            context: Whose sockets ask.
            keys: Says who may.
            is_user: Tells whether there is a user of a name.
            on_refused: Called with where each is that may not.
            warn: Tells the operator.
        """
        self._is_user = is_user
        self._warn = warn
        self._told: set[str] = set()
        self._keys = keys
        self._on_refused = on_refused
        self._watch: Watch | None = None
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._fd = int(self._socket.get(zmq.FD))
        self._socket.bind(ZAP_ENDPOINT)

    def start(self, watch: Watch) -> None:
        """Answer whenever there is a question."""
        self._watch = watch
        watch.add_reader(self._fd, self._on_readable)
        self._on_readable()

    def _on_readable(self) -> None:
        for _ in range(BATCH_MAX):
            try:
                request = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._socket.send_multipart(self._answer(request), zmq.NOBLOCK)
        if self._watch is not None:
            self._watch.call_soon(self._on_readable)

    def _answer(self, request: list[bytes]) -> list[bytes]:
        """Make the reply that RFC 27 wants."""
        version, number = (*request, b"", b"")[:2]
        if len(request) >= REQUEST_FRAMES_LEAST and request[5] == b"CURVE":
            key = zmq.utils.z85.encode(request[6])
            if self._is_known(key):
                # ZeroMQ keeps this for the connection, and whose key it is may change meanwhile.
                return [version, number, b"200", b"OK", key, b""]
        self._on_refused(_address_in(request))
        return [version, number, b"400", b"this key may not connect", b"", b""]

    def _is_known(self, key: bytes) -> bool:
        """Return whether a key may connect: a user's, or any where nobody's keys are known."""
        if self._keys.clients is None:
            return True
        name = self._keys.user_of(key)
        if name is None or self._is_user(name):
            return name is not None
        if name not in self._told:
            self._told.add(name)
            text = (
                f"refused the key of {name}.key in curve_clients_dir: no [[user]] is named {name!r}"
            )
            self._warn(text)
        return False

    def close(self) -> None:
        """Answer nobody any more."""
        if self._watch is not None:
            self._watch.remove_reader(self._fd)
        self._socket.close()
