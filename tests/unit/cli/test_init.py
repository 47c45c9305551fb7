"""What `cogwork init` writes, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import stat
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from cogwork.cli.exit_codes import ExitCode
from cogwork.cli.initial.machines import MACHINES_MAX, BadMachine, machines_of, primaries_of
from cogwork.cli.main import run
from cogwork.config.password_hash import verify
from cogwork.config.reading import load
from cogwork.sasl.verifier import derive, parse_verifier
from cogwork.tls.authority import Authority
from cogwork.tls.contexts import client_context

if TYPE_CHECKING:
    from pathlib import Path

    from cogwork.config.settings import Configuration

THREE = "a,b=10.1.0.2,c=[fd00::3]:7000"

LAYOUTS = (
    (),
    ("--tls",),
    ("--machines", THREE),
    ("--machines", THREE, "--tls"),
    ("--machines", "alone"),
)


def initialized(folder: Path, *options: str) -> dict[str, Configuration]:
    """Run the command; return the configurations by the container's id."""
    assert run(["init", str(folder), *options, "--json"]) == ExitCode.OK
    warnings: list[str] = []
    found = [load(path, warn=warnings.append) for path in sorted(folder.rglob("cogwork.toml"))]
    assert warnings == []
    return {each.id or "": each for each in found}


@pytest.mark.parametrize("options", LAYOUTS, ids=" ".join)
def test_each_file_is_a_configuration_whatever_is_uncommented(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    initialized(tmp_path, *options)
    for path in tmp_path.rglob("cogwork.toml"):
        text = path.read_text()
        all_of_it = re.sub(r"^#(?=[^ #\n]| +\{| *\]$)", "", text, flags=re.MULTILINE)
        assert all_of_it.count("\n[") >= text.count("\n[") + 3, "the examples are tables"
        path.write_text(all_of_it)
        found = load(path, warn=pytest.fail)
        assert found.queues
        assert found.streams
        assert found.telemetry is not None
        assert found.workers == 2


def test_one_machine_is_open_to_its_own_programs_alone(tmp_path: Path) -> None:
    (found,) = initialized(tmp_path).values()
    assert [each.host for each in found.listeners] == ["127.0.0.1"]
    assert not found.has_logins
    assert found.data_dir == str(tmp_path / "data")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cogwork.toml"]


def test_linked_machines_know_each_other(tmp_path: Path) -> None:
    found = initialized(tmp_path, "--machines", THREE)
    assert list(found) == ["a", "b", "c"]
    for name, each in found.items():
        assert each.cluster.primaries == ["a", "b", "c"]
        assert [link.target.host for link in each.links] == [
            host
            for other, host in {"a": "a", "b": "10.1.0.2", "c": "fd00::3"}.items()
            if other != name
        ]
        password = (tmp_path / name / "mesh.password").read_text().strip()
        assert {link.password for link in each.links} == {password}
        (mesh,) = (user for user in each.users if user.mesh)
        assert mesh.password_hash is not None
        assert verify(mesh.password_hash, password)
        assert mesh.permissions == []
    assert [each.listeners[0].advertise for each in found.values()] == [
        "a:5672",
        "10.1.0.2:5672",
        "[fd00::3]:7000",
    ]


def test_the_password_in_the_file_is_the_managers(tmp_path: Path) -> None:
    found = initialized(tmp_path, "--machines", THREE, "--tls")
    password = (tmp_path / "admin.password").read_text().strip()
    for each in found.values():
        (admin,) = (user for user in each.users if user.name == "admin")
        assert admin.password_hash is not None
        assert verify(admin.password_hash, password)
        assert len(admin.scram_verifiers) == 2
        for line in admin.scram_verifiers:
            parsed = parse_verifier(line)
            keys = derive(parsed.hash_name, password, parsed.salt, parsed.iterations)
            assert keys.server_key == parsed.server_key


def test_only_who_wrote_them_can_read_the_secrets(tmp_path: Path) -> None:
    initialized(tmp_path, "--machines", THREE, "--tls")
    modes = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    readable = {name for name, mode in modes.items() if mode & 0o077}
    assert readable == {"ca/ca.pem", "a/tls/ca.pem", "b/tls/ca.pem", "c/tls/ca.pem"}
    assert len(modes) == 3 + 3 * 2 + 3
    keys = [
        path for path in tmp_path.rglob("*") if path.is_file() and b"PRIVATE" in path.read_bytes()
    ]
    assert len(keys) == 4


def test_a_certificate_is_of_one_container(tmp_path: Path) -> None:
    found = initialized(tmp_path, "--machines", THREE, "--tls")
    for name, each in found.items():
        certificate = x509.load_pem_x509_certificate(
            (tmp_path / name / "tls" / f"{name}.pem").read_bytes()
        )
        assert certificate.subject.rfc4514_string() == f"CN={name}"
        assert sorted(user.name for user in each.users) == sorted({"admin", *"abc"} - {name})
        assert all(user.containers == [user.name] for user in each.users if user.mesh)
        assert {link.target.scheme for link in each.links} == {"amqps"}
        client_context(each.links[0].ca, each.links[0].certificate)


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    initialized(tmp_path, "--machines", THREE)
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    capsys.readouterr()
    for options in (("--machines", THREE), ("--machines", "z,c", "--tls")):
        assert run(["init", str(tmp_path), *options]) == ExitCode.ERROR
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert "not overwritten" in told.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == kept


def test_a_link_that_leads_nowhere_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "cogwork.toml").symlink_to(tmp_path / "nowhere")
    assert run(["init", str(tmp_path)]) == ExitCode.ERROR
    assert not (tmp_path / "nowhere").exists()


def test_what_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(["init", str(tmp_path / "file" / "below")]) == ExitCode.ERROR
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a machine's name"),
        ("a,,b", "not a machine's name"),
        ("a,../b", "not a machine's name"),
        ("a,.b", "not a machine's name"),
        ('a"\n', "not a machine's name"),
        ("ä", "not a machine's name"),
        ("CA", "not a machine's name"),
        ("admin.password", "not a machine's name"),
        ("a" * 64, "not a machine's name"),
        ("a=", "leads to no machine"),
        ("a=b:c", "leads to no machine"),
        ("a=b:0", "no port from 1 to 65535"),
        ("a=b:65536", "no port from 1 to 65535"),
        ("a=[fd00::g]", "leads to no machine"),
        ('a=b"x', "leads to no machine"),
        ("a=-b", "leads to no machine"),
        ("a,A=b", "each name once"),
        ("a=x,b=X", "each host and port once"),
        (",".join(f"m{number}" for number in range(MACHINES_MAX + 1)), "at most 100"),
    ],
)
def test_what_names_no_machines_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    with pytest.raises(BadMachine, match=says):
        machines_of(text, tls=False)
    assert run(["init", str(tmp_path / "made"), "--machines", text]) == ExitCode.USAGE
    assert says in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(("count", "primaries"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (9, 5)])
def test_an_odd_number_votes(count: int, primaries: int) -> None:
    machines = machines_of(",".join(f"m{number}" for number in range(count)), tls=False)
    assert primaries_of(machines) == [f"m{number}" for number in range(primaries)]


def test_programs_are_told_where_everything_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    initialized(tmp_path, "--machines", THREE, "--tls")
    told = json.loads(capsys.readouterr().out)
    assert told["machines"][2] == {
        "id": "c",
        "url": "amqps://admin@[fd00::3]:7000",
        "config": "c/cogwork.toml",
    }
    assert all((tmp_path / name).is_file() for name in told["files"])
    assert (tmp_path / told["password_file"]).is_file()
    assert (tmp_path / told["ca_file"]).is_file()


def test_people_are_told_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(tmp_path), "--machines", THREE]) == ExitCode.OK
    told = capsys.readouterr()
    assert "cogwork serve --config cogwork.toml" in told.out
    assert "amqp://admin@a:5672" in told.out
    assert "unencrypted" in told.err
    assert (tmp_path / "admin.password").read_text().strip() not in told.out + told.err


def test_an_authority_issues_what_strict_checks_pass(tmp_path: Path) -> None:
    authority = Authority("test")
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "own.pem").write_bytes(authority.issue("own", ["own.example", "::1"]))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "own.pem")
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    shaken = {name: shakes_hands(server, client, name) for name in ("own.example", "::1", "other")}
    assert shaken == {"own.example": True, "::1": True, "other": False}


def shakes_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bool:
    """Return whether a client trusts a server under a name, without sockets."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(10):
        try:
            here.do_handshake()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLCertVerificationError:
            return False
        else:
            return True
        with contextlib.suppress(ssl.SSLWantReadError):
            there.do_handshake()
    raise AssertionError("the handshake does not end")
