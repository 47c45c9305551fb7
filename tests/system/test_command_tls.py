"""The commands over TLS, with certificates that only their options name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
import trustme

from cogwork.bench.servers.process import free_ports
from cogwork.cli.exit_codes import ExitCode

from .served import done, ran, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = """
[anonymous]
permissions = []

[[listen]]
port = {port}
transport = "amqps"
tls = {{ certificate = "{server}", client_ca = "{ca}" }}

[[user]]
name = "robot"
permissions = [
  {{ address = "#", rights = ["send", "receive", "manage"] }},
  {{ address = "$management", rights = ["send", "manage"] }},
]
"""


class Place(NamedTuple):
    """A container that lets in who shows a certificate, and the options that do so."""

    url: str
    options: tuple[str, ...]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("certified")
    authority = trustme.CA()
    (port,) = free_ports(1)
    names = {name: folder / f"{name}.pem" for name in ("ca", "server", "robot", "key")}
    authority.cert_pem.write_to_path(names["ca"])
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(names["server"])
    robot = authority.issue_cert("robot.example", common_name="robot")
    robot.cert_chain_pems[0].write_to_path(names["robot"])
    robot.private_key_pem.write_to_path(names["key"])
    text = CONFIGURATION.format(port=port, server=names["server"], ca=names["ca"])
    options = {"--ca-file": "ca", "--cert-file": "robot", "--key-file": "key"}
    with served(folder, text) as container:
        words = [word for option, name in options.items() for word in (option, str(names[name]))]
        assert container.url.startswith("amqp://")
        yield Place(f"amqps://127.0.0.1:{port}", tuple(words))


def commanded(place: Place, *words: str) -> str:
    return done(*words, *place.options).stdout


def test_commands_go_by_the_certificates_they_are_given(place: Place) -> None:
    """The container asks for one: it stands for the user of its name."""
    assert "declared" in commanded(place, "queue", "declare", place.url, "queue/tls")
    commanded(place, "send", place.url, "queue/tls", "sealed")
    assert "queue/tls" in commanded(place, "status", place.url)
    assert commanded(place, "receive", place.url, "queue/tls", "--count", "1") == "sealed\n"
    assert "created" in commanded(place, "stream", "create", place.url, "tls")


def test_without_them_nobody_is_trusted(place: Place, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    for options, code, text in (
        ((), ExitCode.CONNECTION, "certificate is not trusted"),
        (place.options[:2], ExitCode.AUTHENTICATION, "no permission"),
        (("--ca-file", str(empty)), ExitCode.CONFIGURATION, str(empty)),
        (place.options[4:], ExitCode.USAGE, "--key-file needs --cert-file"),
    ):
        found = ran("queue", "list", place.url, *options)
        assert (found.returncode, found.stderr.count("\n")) == (code, 1)
        assert text in found.stderr
