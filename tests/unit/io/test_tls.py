"""Certificates: what a context takes from its files, and what happens when the files change."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from cogwork.io.tls import (
    ServerTls,
    TlsFiles,
    TlsFilesError,
    client_context,
    common_name,
    server_context,
)
from cogwork.io.tls_stream import TlsStream

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issue(authority: trustme.CA, directory: Path, name: str = "localhost") -> TlsFiles:
    certificate = authority.issue_cert(name)
    certificate.cert_chain_pems[0].write_to_path(directory / "cert.pem")
    certificate.private_key_pem.write_to_path(directory / "key.pem")
    return TlsFiles(directory / "cert.pem", directory / "key.pem")


def certificate_served(tls: ServerTls, authority: trustme.CA) -> int:
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trust)
    server = TlsStream(tls.context, server_side=True)
    client = TlsStream(trust, server_side=False, server_hostname="localhost")
    while not (server.ready and client.ready):
        server.feed(client.take_output())
        client.feed(server.take_output())
    return int(str(client.peer_certificate["serialNumber"]), 16)


def test_a_new_certificate_serves_the_next_handshake(authority: trustme.CA, tmp_path: Path) -> None:
    tls = ServerTls(issue(authority, tmp_path))
    first = certificate_served(tls, authority)
    issue(authority, tmp_path)
    assert certificate_served(tls, authority) == first
    tls.reload()
    assert certificate_served(tls, authority) != first


def test_a_broken_new_certificate_is_reported_and_the_old_one_kept(
    authority: trustme.CA, tmp_path: Path
) -> None:
    tls = ServerTls(issue(authority, tmp_path))
    first = certificate_served(tls, authority)
    (tmp_path / "cert.pem").write_text("half a certif")
    with pytest.raises(TlsFilesError, match=r"cert\.pem"):
        tls.reload()
    assert certificate_served(tls, authority) == first


def test_a_key_of_another_certificate_is_named(authority: trustme.CA, tmp_path: Path) -> None:
    files = issue(authority, tmp_path)
    authority.issue_cert("localhost").private_key_pem.write_to_path(tmp_path / "key.pem")
    with pytest.raises(TlsFilesError, match=r"key\.pem: this private key does not belong to"):
        server_context(files)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TlsFilesError, match=r"cannot read '.*nowhere\.pem': No such file"):
        server_context(TlsFiles(tmp_path / "nowhere.pem"))


def test_an_encrypted_key_is_refused_instead_of_prompting(
    authority: trustme.CA, tmp_path: Path
) -> None:
    files = issue(authority, tmp_path)
    key = serialization.load_pem_private_key((tmp_path / "key.pem").read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "key.pem").write_bytes(encrypted)
    with pytest.raises(TlsFilesError, match=r"key\.pem: the private key is encrypted"):
        server_context(files)


def test_an_authority_file_without_a_certificate_is_named(
    authority: trustme.CA, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("")
    with pytest.raises(TlsFilesError, match=r"ca\.pem: no PEM certificate"):
        client_context(authorities=tmp_path / "ca.pem")


def test_files_of_a_client_may_be_texts(authority: trustme.CA, tmp_path: Path) -> None:
    files = issue(authority, tmp_path)
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    made = client_context(str(trusted), str(files.certificate), str(files.key))
    assert [each["serialNumber"] for each in made.get_ca_certs()] == [
        each["serialNumber"] for each in client_context(trusted).get_ca_certs()
    ]
    with pytest.raises(TlsFilesError, match=r"cannot read '.*gone\.pem'"):
        client_context(str(tmp_path / "gone.pem"))


def test_requiring_client_certificates_needs_their_authority(
    authority: trustme.CA, tmp_path: Path
) -> None:
    files = issue(authority, tmp_path)
    with pytest.raises(TlsFilesError, match="client_ca"):
        server_context(TlsFiles(files.certificate, files.key, require_client_certificate=True))


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (((("countryName", "NZ"),), (("commonName", "alice"),)), "alice"),
        (((("commonName", "alice"),), (("commonName", "root"),)), None),
        ((), None),
    ],
)
def test_the_identity_is_the_only_common_name(subject: object, name: str | None) -> None:
    assert common_name({"subject": subject}) == name
