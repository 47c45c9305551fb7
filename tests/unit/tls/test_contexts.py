"""TLS contexts: versions, ciphers, encrypted keys and revocation lists."""

from __future__ import annotations

import logging
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from certificates import Authority

from cogwork.amqp.frames import TLS_HEADER
from cogwork.config.reading import ConfigurationError, load
from cogwork.engines.etcd.host import EtcdHost
from cogwork.io.tls import ServerTls
from cogwork.io.tls_stream import TlsError, TlsStream
from cogwork.plugin.engine.contract import EngineContext
from cogwork.tls.contexts import TlsFiles, TlsFilesError, client_context, server_context
from cogwork.tls.expiry import EXPIRY

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "sesame-1"  # of a key that is made here
MESSAGE = "expected a PEM file with revocation lists"


class Place:
    """An authority with a server and a client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.server = self.authority.issue("server", "localhost")
        self.client = self.authority.issue("client", "alice.example", common_name="alice")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def joined(server: TlsStream, client: TlsStream) -> None:
    while True:
        to_server, to_client = client.take_output(), server.take_output()
        if not to_server and not to_client:
            return
        server.feed(to_server)
        client.feed(to_client)


def shake(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Shake hands; return the version that is spoken then."""
    ends = TlsStream(server, server_side=True), TlsStream(client, False, "localhost")
    joined(*ends)
    assert ends[0].ready
    return ends[0].version


def test_a_minimum_version_refuses_older_ones(place: Place) -> None:
    server = server_context(TlsFiles(place.server, minimum_version="1.3"))
    client = client_context(place.authority.file)
    assert shake(server, client) == "TLSv1.3"
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(TlsError, match=r"older than is allowed here"):
        shake(server, client)


def test_ciphers_are_those_of_the_list(place: Place) -> None:
    server = server_context(TlsFiles(place.server, ciphers="ECDHE+AESGCM"))
    client = client_context(place.authority.file, ciphers="ECDHE+CHACHA20")
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(TlsError, match="no cipher"):
        shake(server, client)


def test_an_encrypted_key_opens_by_its_password_alone(place: Place) -> None:
    sealed = place.authority.encrypt(place.server, PASSWORD)
    server = server_context(TlsFiles(sealed, key_password=PASSWORD))
    assert shake(server, client_context(place.authority.file)) is not None
    for wrong in ("wrong", None):
        with pytest.raises(TlsFilesError, match="password") as failure:
            server_context(TlsFiles(sealed, key_password=wrong))
        assert "wrong" not in str(failure.value)
    assert PASSWORD not in repr(TlsFiles(sealed, key_password=PASSWORD))


def test_a_revoked_certificate_is_refused_once_the_list_is_replaced(place: Place) -> None:
    crl = place.authority.revoke()
    tls = ServerTls(TlsFiles(place.server, client_ca=place.authority.file, crl=crl))
    client = client_context(place.authority.file, place.client)
    assert shake(tls.context, client) is not None
    assert not tls.look()
    place.authority.revoke(place.client)
    assert tls.look()
    with pytest.raises(TlsError, match="certificate revoked"):
        shake(tls.context, client)
    crl.write_text("broken")
    with pytest.raises(TlsFilesError, match="no certificate revocation list"):
        tls.look()
    assert not tls.look()
    with pytest.raises(TlsError, match="certificate revoked"):
        shake(tls.context, client)


def test_a_client_refuses_a_revoked_server(place: Place) -> None:
    server = server_context(TlsFiles(place.server))
    crl = place.authority.revoke(place.server)
    with pytest.raises(TlsError, match="certificate revoked"):
        shake(server, client_context(place.authority.file, crl=crl))


def test_a_list_that_has_expired_is_told_and_trusts_nobody(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    crl = place.authority.revoke(until=datetime.now(UTC) - timedelta(hours=1))
    with caplog.at_level(logging.WARNING, "cogwork"):
        server = server_context(TlsFiles(place.server, client_ca=place.authority.file, crl=crl))
    assert f"the revocation list {crl} has expired on " in caplog.text
    with pytest.raises(TlsError, match="CRL has expired"):
        shake(server, client_context(place.authority.file, place.client))


def test_a_list_that_is_young_is_not_told(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    crl = place.authority.revoke()
    context = server_context(TlsFiles(place.server, client_ca=place.authority.file, crl=crl))
    assert "revocation" not in caplog.text
    later_s = datetime.now(UTC).timestamp() + 3 * 86_400
    EXPIRY.remind(later_s)
    assert f"the revocation list {crl} has expired" in caplog.text
    EXPIRY.forget(context)


def test_plain_amqp_is_answered_with_what_is_wanted(place: Place) -> None:
    server = TlsStream(server_context(TlsFiles(place.server)), server_side=True)
    with pytest.raises(TlsError, match="speaks plain AMQP, and TLS is required"):
        server.feed(b"AMQP\x03\x01\x00\x00")
    assert server.take_output() == TLS_HEADER


def test_contexts_of_etcd_are_watched_too(place: Place) -> None:
    before = len(EXPIRY._held)
    options = {"ca_file": str(place.authority.file), "cert_file": str(place.client)}
    host = EtcdHost(EngineContext({"url": "https://localhost:1", **options}))
    assert len(EXPIRY._held) == before + 1
    del host
    sealed = str(place.authority.encrypt(place.client, PASSWORD))
    wrong = {**options, "cert_file": sealed, "key_password": "wrong"}
    with pytest.raises(ValueError, match="does not open this private key"):
        EtcdHost(EngineContext(wrong))
    EtcdHost(EngineContext({**wrong, "key_password": PASSWORD}))


LISTEN = """\
[[listen]]
port = 1
transport = "{transport}"
{more}
[listen.tls]
certificate = "server.pem"
{tls}
[[user]]
name = "u"
"""


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        ("minimum_version = '1.1'", ':7: listen[0].tls.minimum_version: found "1.1", expected one'),
        ("ciphers = 'NOPE'", ':7: listen[0].tls.ciphers: found "NOPE", expected names of ciphers'),
        ("minimum_version = '1.3'\nciphers = 'ECDHE'", ":8: listen[0].tls.ciphers: found "),
        ("client_ca = 'ca.pem'\ncrl_file = 'away.pem'", ":8: listen[0].tls.crl_file: found cannot"),
        ("client_ca = 'ca.pem'\ncrl_file = 'ca.pem'", MESSAGE),
        ("crl_file = 'ca.pem'", ":7: listen[0].tls.crl_file: found this without client_ca"),
        ("users = { a = 'b' }", ":7: listen[0].tls.users: found this without client_ca"),
        ("identity_from = 'dn'", "identity_from: found this without client_ca"),
        ("client_ca = 'ca.pem'\nidentity_from = 'san'", ":8: listen[0].tls.identity_from: found "),
        ("client_ca = 'ca.pem'\nusers = { a = '' }", "listen[0].tls.users.a"),
        ("certificate = 'x'", "found"),
    ],
)
def test_a_mistake_names_its_place(place: Place, tls: str, message: str) -> None:
    file = place.folder / "cogwork.toml"
    file.write_text(LISTEN.format(transport="amqps", more="", tls=tls))
    with pytest.raises(ConfigurationError) as failure:
        load(file)
    assert message in str(failure.value)


def test_a_wrong_password_of_a_key_names_its_place(place: Place) -> None:
    sealed = place.authority.encrypt(place.server, PASSWORD)
    sealed.rename(place.folder / "server.pem")
    file = place.folder / "cogwork.toml"
    (place.folder / "pw").write_text("open-up\n")
    (place.folder / "pw").chmod(0o600)
    file.write_text(LISTEN.format(transport="amqps", more="", tls="key_password_file = 'pw'"))
    with pytest.raises(ConfigurationError) as failure:
        load(file)
    assert ":7: listen[0].tls.key_password_file: found " in str(failure.value)
    assert "open-up" not in str(failure.value)
    (place.folder / "pw").write_text(PASSWORD)
    (listen,) = load(file).listeners
    assert listen.tls is not None
    assert PASSWORD not in repr(listen)


def test_require_tls_rules_a_transport_without_it_out(place: Place) -> None:
    file = place.folder / "cogwork.toml"
    text = '[[listen]]\nport = 1\nrequire_tls = true\ntransport = "ws"\n[[user]]\nname = "u"\n'
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r":3: listen\[0\]\.require_tls: found true for"):
        load(file)
    file.write_text(LISTEN.format(transport="wss", more="require_tls = true", tls=""))
    assert load(file).listeners[0].require_tls
