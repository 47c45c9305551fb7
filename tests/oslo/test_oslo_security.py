"""TLS and SASL, as the options of the driver say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oslo_messaging
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from helpers import client, rpc

from cogwork.bench.servers.process import free_ports
from cogwork.config.password_hash import hash_password
from cogwork.sasl.verifier import make_verifier
from cogwork.testing import TestContainer

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIGURATION = """
[[listen]]
port = {port}
transport = "amqps"
tls = {{ certificate = "{folder}/server.pem", client_ca = "{folder}/ca.pem" }}

[[user]]
name = "nova@cloud"
password_hash = "{password_hash}"
scram_verifiers = ["{verifier}"]
permissions = [{{ address = "openstack.org/#", rights = ["send"] }}]

[[user]]
name = "robot"
password_hash = "{password_hash}"
permissions = [{{ address = "openstack.org/#", rights = ["send"] }}]
"""

NOBODY = "nobody is there"
"""What a cast to nobody ends with, once it is connected."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate: of the container, and of a client, whose key is encrypted."""
    made = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(made / "ca.pem")
    server = authority.issue_cert("127.0.0.1", "cloud.example")
    server.private_key_and_cert_chain_pem.write_to_path(made / "server.pem")
    robot = authority.issue_cert("robot@x.example", common_name="robot")
    robot.cert_chain_pems[0].write_to_path(made / "robot.pem")
    key = serialization.load_pem_private_key(robot.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open sesame"),
    )
    (made / "robot.key").write_bytes(encrypted)
    return made


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    (found,) = free_ports(1)
    text = CONFIGURATION.format(
        port=found,
        folder=folder,
        password_hash=hash_password("pass"),
        verifier=make_verifier("sha256", "pass"),
    )
    container = TestContainer(text, 0, "secure").start()
    yield found
    container.stop()


def cast(url: str, **options: object) -> str:
    """Cast to nobody; return what the error says."""
    with (
        rpc(url, default_send_timeout=2, ssl=True, **options) as transport,
        pytest.raises(oslo_messaging.MessageDeliveryFailure) as caught,
    ):
        client(transport, "nobody", retry=0).cast({}, "any")
    return str(caught.value)


def test_a_user_with_a_password_and_the_default_realm(port: int, folder: Path) -> None:
    authority = {"ssl_ca_file": str(folder / "ca.pem")}
    url = f"amqp://nova:pass@127.0.0.1:{port}/"
    assert NOBODY in cast(url, **authority, sasl_default_realm="cloud")
    assert "not connected" in cast(url, **authority)
    assert NOBODY in cast(url, **authority, sasl_default_realm="cloud", sasl_mechanisms="PLAIN")


def test_a_user_by_scram(port: int, folder: Path) -> None:
    options = {"ssl_ca_file": str(folder / "ca.pem"), "sasl_default_realm": "cloud"}
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"):
        url = f"amqp://nova:%s@127.0.0.1:{port}/"
        assert NOBODY in cast(url % "pass", **options, sasl_mechanisms=mechanism)
        assert "not connected" in cast(url % "wrong", **options, sasl_mechanisms=mechanism)


def test_a_certificate_with_an_encrypted_key(port: int, folder: Path) -> None:
    shown = {
        "ssl_ca_file": str(folder / "ca.pem"),
        "ssl_cert_file": str(folder / "robot.pem"),
        "ssl_key_file": str(folder / "robot.key"),
    }
    url = f"amqp://127.0.0.1:{port}/"
    options = {**shown, "sasl_mechanisms": "EXTERNAL", "ssl_key_password": "open sesame"}
    assert NOBODY in cast(url, **options)
    with pytest.raises(oslo_messaging.exceptions.ConfigurationError, match=r"robot\.key"):
        cast(url, **{**options, "ssl_key_password": None})


def test_whose_certificate_it_has_to_be(port: int, folder: Path) -> None:
    options = {"ssl_ca_file": str(folder / "ca.pem"), "sasl_default_realm": "cloud"}
    host = f"amqp://nova:pass@localhost:{port}"
    assert "certificate" in cast(f"{host}/cloud.example", **options)
    assert NOBODY in cast(f"{host}/cloud.example", **options, ssl_verify_vhost=True)
    assert "certificate" in cast(f"{host}/other.example", **options, ssl_verify_vhost=True)
    assert "certificate" in cast(f"amqp://nova:pass@127.0.0.1:{port}/", sasl_default_realm="cloud")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its executors
def test_the_permissions_that_the_page_names_are_enough() -> None:
    page = (Path(__file__).parents[2] / "docs" / "oslo.md").read_text()
    found = re.search(r"\[\[user\]\].+?```", page, re.DOTALL)
    assert found is not None
    text = found[0].removesuffix("```").replace("…", hash_password("pass"))
    container = TestContainer(text, 0, "permitting").start()
    url = container.url.replace("amqp://", "amqp://nova:pass@") + "/"
    try:
        with rpc(url) as there, rpc(url) as here:
            target = oslo_messaging.Target(topic="named", server="one")
            server = oslo_messaging.get_rpc_server(there, target, [Named()], executor="threading")
            server.start()
            try:
                assert client(here, "named", timeout=10).call({}, "name") == "one"
            finally:
                server.stop()
                server.wait()
    finally:
        container.stop()


class Named:
    """A server's only method."""

    def name(self, ctxt: dict[str, Any]) -> str:
        return "one"
