"""Who issues tokens: real keys, and a server on this machine that tells the public ones."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import algorithms

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

ISSUER = "https://login.example.org/"
AUDIENCE = "cogwork"


class Issuer:
    """Keys by name; each signs by its own algorithm.

    Attributes:
        keys: The private keys, with their algorithms.
    """

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, Any]] = {
            "rsa": ("RS256", rsa.generate_private_key(public_exponent=65537, key_size=2048)),
            "ec": ("ES256", ec.generate_private_key(ec.SECP256R1())),
            "ed": ("EdDSA", ed25519.Ed25519PrivateKey.generate()),
        }

    def token(self, user: str = "ann", key: str = "ec", **claims: Any) -> str:
        """Sign a token, good for five minutes, with other `claims`; those of None are left out."""
        now_s = int(time.time())
        told = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "exp": now_s + 300} | claims
        algorithm, private = self.keys[key]
        kept = {name: value for name, value in told.items() if value is not None}
        return jwt.encode(kept, private, algorithm, {"kid": key})

    def jwks(self, *names: str) -> bytes:
        """Write the set of the public keys, or of those that are named."""
        return json.dumps({"keys": [self.jwk(name) for name in names or self.keys]}).encode()

    def jwk(self, name: str) -> dict[str, Any]:
        """Return a public key as it stands in the set."""
        algorithm, private = self.keys[name]
        kind = algorithms.get_default_algorithms()[algorithm]
        entry: dict[str, Any] = kind.to_jwk(private.public_key(), as_dict=True)
        return entry | {"kid": name, "use": "sig"}


class JwksServer:
    """Answers every request by `answer`, which may be set anew.

    Attributes:
        url: Where it is.
        asked: How often it was asked.
        answer: Writes the answer.
    """

    def __init__(self, document: bytes, tls: ssl.SSLContext | None = None) -> None:
        self.asked = 0
        self.answer: Callable[[BaseHTTPRequestHandler], None] = saying(document)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the library's name
                outer.asked += 1
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http" if tls is None else "https"
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}/jwks.json"


def saying(
    document: bytes, status: int = 200, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Make an answer of a document."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(document)

    return answer


@contextmanager
def jwks_server(document: bytes, tls: ssl.SSLContext | None = None) -> Iterator[JwksServer]:
    """Run a server in a thread; by https with a context."""
    made = JwksServer(document, tls)
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join()
