"""TLS without I/O: two ends joined by hand, byte by byte where it matters."""

from __future__ import annotations

import ssl
import warnings
from typing import TYPE_CHECKING

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from cogwork.io.tls import TlsFiles, client_context, common_name, server_context
from cogwork.io.tls_stream import TlsError, TlsStream

if TYPE_CHECKING:
    from pathlib import Path


class Certificates:
    """One authority, a server's certificate, and a client's with the common name alice."""

    def __init__(self, directory: Path) -> None:
        authority = trustme.CA()
        self.authority = directory / "ca.pem"
        authority.cert_pem.write_to_path(self.authority)
        self.server = self._issue(authority, directory / "server.pem", "localhost")
        self.client = self._issue(authority, directory / "client.pem", "alice", common_name="alice")

    @staticmethod
    def _issue(
        authority: trustme.CA, path: Path, name: str, common_name: str | None = None
    ) -> Path:
        issued = authority.issue_cert(name, common_name=common_name)
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def join(server: TlsStream, client: TlsStream) -> None:
    """Carry bytes both ways until neither side has any."""
    while True:
        to_server, to_client = client.take_output(), server.take_output()
        if not to_server and not to_client:
            return
        server.feed(to_server)
        client.feed(to_client)


@pytest.fixture
def pair(certificates: Certificates) -> tuple[TlsStream, TlsStream]:
    server = TlsStream(server_context(TlsFiles(certificates.server)), server_side=True)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    join(server, client)
    return server, client


def test_both_ends_get_ready_and_talk(pair: tuple[TlsStream, TlsStream]) -> None:
    server, client = pair
    assert server.ready
    assert client.ready
    assert client.version == "TLSv1.3"
    client.send(b"AMQP\x00\x01\x00\x00")
    assert bytes(server.feed(client.take_output())) == b"AMQP\x00\x01\x00\x00"
    server.send(b"AMQP\x00\x01\x00\x00")
    assert bytes(client.feed(server.take_output())) == b"AMQP\x00\x01\x00\x00"


def test_what_is_sent_early_leaves_with_the_handshake(certificates: Certificates) -> None:
    server = TlsStream(server_context(TlsFiles(certificates.server)), server_side=True)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    client.send(b"early")
    server.feed(client.take_output())
    client.feed(server.take_output())
    assert bytes(server.feed(client.take_output())) == b"early"


@settings(max_examples=20, deadline=None)
@given(payload=st.binary(max_size=70_000), cuts=st.lists(st.integers(1, 20_000), max_size=30))
def test_any_cut_of_the_ciphertext_gives_the_same_plaintext(
    certificates: Certificates, payload: bytes, cuts: list[int]
) -> None:
    server = TlsStream(server_context(TlsFiles(certificates.server)), server_side=True)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    join(server, client)
    client.send(payload)
    ciphertext = client.take_output()
    received = b""
    for cut in cuts:
        received += server.feed(ciphertext[:cut])
        ciphertext = ciphertext[cut:]
    received += server.feed(ciphertext)
    assert received == payload


def test_a_shared_scratch_buffer_is_used_and_outgrown(certificates: Certificates) -> None:
    scratch = bytearray(20_000)
    context = server_context(TlsFiles(certificates.server))
    server = TlsStream(context, server_side=True, scratch=scratch)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    join(server, client)
    client.send(b"small")
    server.feed(client.take_output())
    assert scratch.startswith(b"small")
    client.send(bytes(range(256)) * 1000)
    assert server.feed(client.take_output()) == bytes(range(256)) * 1000
    client.send(b"again")
    server.feed(client.take_output())
    assert scratch.startswith(b"again")


def test_ciphertext_may_be_read_into_the_scratch_buffer(certificates: Certificates) -> None:
    scratch = bytearray(20_000)
    context = server_context(TlsFiles(certificates.server))
    server = TlsStream(context, server_side=True, scratch=scratch)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    join(server, client)
    client.send(b"0123456789" * 1000)
    ciphertext = client.take_output()
    scratch[: len(ciphertext)] = ciphertext
    assert server.feed(memoryview(scratch)[: len(ciphertext)]) == b"0123456789" * 1000


def test_close_notify_tells_the_end(pair: tuple[TlsStream, TlsStream]) -> None:
    server, client = pair
    client.send(b"last words")
    client.close()
    client.close()
    assert bytes(server.feed(client.take_output())) == b"last words"
    assert server.peer_closed
    server.close()
    client.feed(server.take_output())
    assert client.peer_closed


def test_plain_amqp_on_a_tls_port_is_named(certificates: Certificates) -> None:
    server = TlsStream(server_context(TlsFiles(certificates.server)), server_side=True)
    with pytest.raises(TlsError, match="the peer speaks plain AMQP, and TLS is required here"):
        server.feed(b"AMQP\x03\x01\x00\x00")


def test_plain_http_on_a_tls_port_is_named(certificates: Certificates) -> None:
    server = TlsStream(server_context(TlsFiles(certificates.server)), server_side=True)
    with pytest.raises(TlsError, match="plain HTTP"):
        server.feed(b"GET / HTTP/1.1\r\n\r\n")


def test_an_untrusted_server_is_refused_and_told_why(
    certificates: Certificates, tmp_path: Path
) -> None:
    stranger = Certificates(tmp_path)
    server = TlsStream(server_context(TlsFiles(stranger.server)), server_side=True)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    server.feed(client.take_output())
    with pytest.raises(TlsError, match="certificate is not trusted: unable to get local issuer"):
        client.feed(server.take_output())
    with pytest.raises(TlsError, match="does not trust the authority of our certificate"):
        server.feed(client.take_output())


def test_a_forged_record_ends_the_stream(pair: tuple[TlsStream, TlsStream]) -> None:
    server, client = pair
    client.send(b"transfer")
    forged = bytearray(client.take_output())
    forged[-1] ^= 1
    with pytest.raises(TlsError):
        server.feed(forged)
    assert server.take_output(), "an alert tells the peer"


def test_a_client_certificate_gives_the_identity(certificates: Certificates) -> None:
    files = TlsFiles(certificates.server, None, certificates.authority, True)
    server = TlsStream(server_context(files), server_side=True)
    trust = client_context(certificates.authority, certificates.client)
    client = TlsStream(trust, False, "localhost")
    join(server, client)
    assert common_name(server.peer_certificate) == "alice"


def test_a_missing_client_certificate_is_refused_where_one_is_required(
    certificates: Certificates,
) -> None:
    files = TlsFiles(certificates.server, None, certificates.authority, True)
    server = TlsStream(server_context(files), server_side=True)
    client = TlsStream(client_context(certificates.authority), False, "localhost")
    with pytest.raises(TlsError, match="a client certificate is required"):
        join(server, client)
    with pytest.raises(TlsError, match="the peer requires a client certificate"):
        client.feed(server.take_output())


def test_no_certificate_is_no_identity(pair: tuple[TlsStream, TlsStream]) -> None:
    server, _ = pair
    assert common_name(server.peer_certificate) is None


def test_tls_1_1_is_refused(certificates: Certificates) -> None:
    old = client_context(certificates.authority)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # what is old
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    server = TlsStream(server_context(TlsFiles(certificates.server)), server_side=True)
    client = TlsStream(old, False, "localhost")
    with pytest.raises(TlsError, match=r"TLS older than is allowed here"):
        server.feed(client.take_output())
