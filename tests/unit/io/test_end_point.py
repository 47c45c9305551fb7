"""The channel binding of a certificate: what both ends compute, checked by another library."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID

from cogwork.io.end_point import end_point, end_point_of_pem
from cogwork.io.tls import ServerTls, TlsFiles
from cogwork.io.tls_stream import TlsStream

if TYPE_CHECKING:
    from pathlib import Path

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "north")])
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def certificate(key: Any, algorithm: Any, **options: Any) -> x509.Certificate:
    builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), 1, NOW, NOW + timedelta(1))
    return builder.sign(key, algorithm, **options)


RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize("key", [RSA, CURVE])
@pytest.mark.parametrize("algorithm", [hashes.SHA256(), hashes.SHA384(), hashes.SHA512()])
def test_the_hash_is_the_signatures(key: Any, algorithm: hashes.HashAlgorithm) -> None:
    made = certificate(key, algorithm)
    assert end_point(made.public_bytes(serialization.Encoding.DER)) == made.fingerprint(algorithm)
    pem = made.public_bytes(serialization.Encoding.PEM).decode()
    other = certificate(CURVE, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    assert end_point_of_pem(f"a key\n{pem}\n{other}") == made.fingerprint(algorithm)


def test_without_a_hash_there_is_no_binding() -> None:
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    for made in (
        certificate(ed25519.Ed25519PrivateKey.generate(), None),
        certificate(RSA, hashes.SHA256(), rsa_padding=pss),
    ):
        assert end_point(made.public_bytes(serialization.Encoding.DER)) is None


def test_what_is_no_certificate_has_none() -> None:
    der = certificate(CURVE, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    for size in range(len(der) // 2):
        end_point(der[:size])  # cut off in every place: no error
    assert end_point(b"") is None
    assert end_point(b"\x30\x84\xff\xff\xff\xff") is None
    assert end_point(None) is None
    assert end_point_of_pem("no certificate") is None


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_ends_know_the_connection_by_the_same(version: ssl.TLSVersion, tmp_path: Path) -> None:
    authority = trustme.CA()
    pair = authority.issue_cert("localhost").private_key_and_cert_chain_pem
    pair.write_to_path(tmp_path / "server.pem")
    tls = ServerTls(TlsFiles(tmp_path / "server.pem"))
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.maximum_version = version
    authority.configure_trust(trust)
    server = TlsStream(tls.context, server_side=True)
    client = TlsStream(trust, server_side=False, server_hostname="localhost")
    assert client.server_end_point is None
    while not (server.ready and client.ready):
        server.feed(client.take_output())
        client.feed(server.take_output())
    assert tls.end_point is not None
    assert client.server_end_point == tls.end_point
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        tmp_path / "server.pem"
    )
    tls.reload()
    assert tls.end_point != client.server_end_point, "the next connections' own"
