"""Containers that know each other by certificates, and those that do not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from cogwork.bench.servers.process import free_ports

from .meshes import Member
from .served import OPEN, within
from .test_mesh_links import links_of, log_of, reached, running

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """Files of one authority: its own, a server's, and one of each name."""

    folder: Path
    authority: trustme.CA

    def issue(self, name: str) -> str:
        """Return the file of a container's certificate."""
        path = self.folder / f"{name}.pem"
        made = self.authority.issue_cert("127.0.0.1", common_name=name)
        made.private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    @property
    def ca(self) -> str:
        path = self.folder / "ca.pem"
        self.authority.cert_pem.write_to_path(path)
        return str(path)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    (tmp_path / "good").mkdir()
    return Certificates(tmp_path / "good", trustme.CA())


@pytest.fixture
def strangers(tmp_path: Path) -> Certificates:
    (tmp_path / "strange").mkdir()
    return Certificates(tmp_path / "strange", trustme.CA())


def server(folder: Path, port: int, tls_port: int, certificates: Certificates) -> Member:
    """A container that takes links from `north`, who shows a certificate, and from nobody else."""
    return Member(
        "server",
        port,
        [],
        folder / "server",
        f"""
{OPEN}mesh = false
[[listen]]
port = {tls_port}
transport = "amqps"
tls = {{ certificate = "{certificates.issue("server")}", client_ca = "{certificates.ca}" }}
[[user]]
name = "north"
mesh = true
[[user]]
name = "plain"
""",
    )


def client(folder: Path, port: int, tls_port: int, certificate: str | None, ca: str) -> Member:
    shown = "" if certificate is None else f'certificate = "{certificate}"\n'
    return Member(
        "client",
        port,
        [],
        folder / "client",
        f'[[link]]\nurl = "amqps://127.0.0.1:{tls_port}"\nca = "{ca}"\n{shown}',
    )


def link_of(member: Member) -> dict[str, Any]:
    (row,) = links_of(member)
    return row


def test_a_certificate_links(tmp_path: Path, certificates: Certificates) -> None:
    ports = free_ports(3)
    there = server(tmp_path, ports[0], ports[1], certificates)
    here = client(tmp_path, ports[2], ports[1], certificates.issue("north"), certificates.ca)
    with running(there, here):
        within(30, lambda: reached(there) == ["client", "server"], "linked")
        row = link_of(here)
        assert (row["url"], row["state"]) == (f"amqps://127.0.0.1:{ports[1]}", "up")
        assert link_of(there)["url"].startswith("amqps://127.0.0.1:")
        here.served.run("send", here.url, "queue/over", "x", "--count", "3")
        got = there.served.run("receive", there.url, "queue/over", "--count", "3")
        assert got == "x\nx\nx\n"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plain", "user 'plain' may not link with server"),
        ("unknown", "the server refused the authentication"),
        (None, "a container without a name may not link with server"),
    ],
)
def test_a_certificate_of_nobody_does_not_link(
    tmp_path: Path, certificates: Certificates, name: str | None, says: str
) -> None:
    ports = free_ports(3)
    there = server(tmp_path, ports[0], ports[1], certificates)
    shown = None if name is None else certificates.issue(name)
    here = client(tmp_path, ports[2], ports[1], shown, certificates.ca)
    with running(there, here):
        within(30, lambda: says in str(link_of(here)["error"]), "the link says why")
        assert says in log_of(here)
        assert reached(there) == ["server"]


def test_an_authority_that_is_not_known_does_not_link(
    tmp_path: Path, certificates: Certificates, strangers: Certificates
) -> None:
    ports = free_ports(4)
    there = server(tmp_path, ports[0], ports[1], certificates)
    here = client(tmp_path, ports[2], ports[1], certificates.issue("north"), strangers.ca)
    with running(there, here):
        within(30, lambda: "certificate" in str(link_of(here)["error"]), "the link says why")
        assert link_of(here)["state"] == "connecting"
        assert "[[link]]" not in link_of(here)["error"], "that is where it comes from"
        here.served.run("link", "remove", here.url, f"127.0.0.1:{ports[1]}")
        here.served.run("link", "add", here.url, f"127.0.0.1:{ports[1]}")
        within(30, lambda: link_of(here)["error"] != "not dialled yet", "no TLS is noticed, too")
        here.served.run("link", "remove", here.url, f"127.0.0.1:{ports[1]}")
        here.served.run("link", "add", here.url, f"amqps://127.0.0.1:{ports[1]}")
        told = "by the system's authorities: a [[link]] in the configuration can name others"
        within(30, lambda: told in str(link_of(here)["error"]), "it says who can name others")
        assert reached(there) == ["server"]
        assert json.loads(there.served.run("link", "list", there.url, "--json")) == []
